#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Calls made before our constructor: from .preinit_array, and from the constructor of a library
# that is preloaded after us.
. test/libinterpose/common.bash

guest open=1000/s,read=1000/s "$PROGRAMS/early" "$DIR"
export LD_PRELOAD=$PROGRAMS/early_library
limited open=1000/s,read=1000/s "$PROGRAMS/early" "$DIR" || fail "with an early library: $?"
