#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# beside
# The lease protocol model-checked: small instances exhaustively, broken rules must be found.
# timeout: 900
exec test/spin/run
