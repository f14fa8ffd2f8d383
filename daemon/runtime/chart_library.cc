// SPDX-License-Identifier: Apache-2.0
// Chart.js (MIT licence, its notice inside), as Debian's libjs-chart.js packs it: the dashboard
// asks nobody but us, so the daemon carries it. `make CHART_JS=FILE` takes it from elsewhere.
#include "runtime/dashboard.h"

#ifndef CHART_JS
#define CHART_JS "/usr/share/javascript/chart.js/chart.min.js"
#endif

__asm__(
    ".pushsection .rodata\n"
    ".globl sluice_chart_library\n"
    "sluice_chart_library: .incbin \"" CHART_JS
    "\"\n"
    ".byte 0\n"
    ".popsection\n");
