#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# vfork is not disturbed, nor is the parent by what the child does to its descriptors.
. test/libinterpose/common.bash

guest read=500/s "$PROGRAMS/vfork" "$DIR"
counted 20 20 op read calls
