#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Waiting in a call that is no cancellation point does not make it one, nor does syscall(2) become
# one for the number it is given.
. test/libinterpose/common.bash

guest stat=100/s "$PROGRAMS/no_cancel_point" "$DIR"
counted 20 30 channel stat delayed
guest none "$PROGRAMS/raw_points" "$DIR"
