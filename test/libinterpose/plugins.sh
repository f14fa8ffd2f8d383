#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plug-ins loaded with RTLD_DEEPBIND and dlmopen.
. test/libinterpose/common.bash

guest read=200/s "$PROGRAMS/plugins" "$DIR" "$PROGRAMS/plugin"
counted 20 100 op read calls
