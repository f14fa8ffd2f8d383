#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A handler leaves a wait by siglongjmp; nothing stays held.
. test/libinterpose/common.bash

guest read=40/s "$PROGRAMS/longjmp" "$DIR"
counted 10 1000000 channel read delayed
