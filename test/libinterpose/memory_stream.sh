#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a program writes into a stream in memory is no I/O, whatever number its record shows.
. test/libinterpose/common.bash

guest write=100MB/s,close=1000/s "$PROGRAMS/unusual" memory_stream "$DIR"
counted 0 0 channel write amount
counted 0 0 op write calls
counted 0 0 call fclose calls
counted 2 2 call pread calls
