#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A child that inherits a descriptor is slowed on it.
. test/libinterpose/common.bash

ms=$(limited read=100/s sh -c "exec <$DIR/file; $PROGRAMS/loop stdin 60 $DIR") || fail "status $?"
between 450 "$ms" 20000 'milliseconds for 60 reads at 100/s'
