#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A signal handler does I/O while its thread waits for tokens.
. test/libinterpose/common.bash

guest read=100/s,stat=100/s,open=100/s "$PROGRAMS/signal_io" "$DIR"
counted 20 100000 channel read delayed
