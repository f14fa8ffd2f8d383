#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Threads are cancelled while they wait, and in a blocking read of a pipe.
. "$(dirname "$0")/common.bash"

guest read=50/s "$PROGRAMS/cancel" "$DIR"
counted 5 1000000 channel read delayed
