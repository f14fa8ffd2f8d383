#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A vfork child that has had a vfork child itself still leaves its parent's table alone.
. test/libinterpose/common.bash

guest read=1000/s "$PROGRAMS/unusual" nested_vfork "$DIR"
counted 20 20 channel read calls
