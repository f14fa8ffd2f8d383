#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Starting a program takes no descriptor that another thread would miss.
. test/libinterpose/common.bash

guest open=1M/s "$PROGRAMS/spawns_beside"
