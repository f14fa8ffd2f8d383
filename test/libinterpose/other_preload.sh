#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Another preloaded library before and after us: both see every call.
. test/libinterpose/common.bash

lib=$PROGRAMS/early_library
LD_PRELOAD=$lib limited open=1000/s "$PROGRAMS/other_preload" "$DIR" || fail "after us: $?"
counted 21 60 channel open calls
limited open=1000/s sh -c "LD_PRELOAD=$lib:\$LD_PRELOAD exec $PROGRAMS/other_preload $DIR" ||
  fail "before us: $?"
counted 21 60 channel open calls
