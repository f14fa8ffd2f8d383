#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Pipes, sockets, terminals, devices, /proc and close are never delayed.
. test/libinterpose/common.bash

guest read=20/s,write=1/s,stat=1/s,close=1/s "$PROGRAMS/never_delayed" "$DIR"
counted 0 10 op close delayed
counted 0 2 channel write calls
