#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A name that libc lacks is found in the library that brings it, even when that is loaded late.
. test/libinterpose/common.bash

guest open=1000/s "$PROGRAMS/late" "$DIR" "$PROGRAMS/late_library"
counted 10 60 channel open calls
