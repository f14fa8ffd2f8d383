#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The tests beside this one are worth something: their guests fail under a naive preload shim.
exec test/naive/expect_failures.sh
