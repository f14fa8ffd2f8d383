#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No EINTR from a read that waited; handlers run at once.
. test/libinterpose/common.bash

guest read=2/s "$PROGRAMS/interrupted" "$DIR"
counted 2 1000000 channel read delayed
