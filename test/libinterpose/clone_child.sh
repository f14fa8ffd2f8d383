#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A child of clone(CLONE_VM | CLONE_VFORK) writes its descriptors and its end into no table of its
# parent.
. test/libinterpose/common.bash

guest read=1000/s "$PROGRAMS/unusual" clone_child "$DIR"
counted 20 20 channel read calls
