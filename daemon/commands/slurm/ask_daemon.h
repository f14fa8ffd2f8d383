// SPDX-License-Identifier: Apache-2.0
// One request to sluiced from inside Slurm's programs, in plain C: they have no libstdc++. What
// stays true: it is over after `budget_ms` whatever the daemon does, it leaves nothing open,
// changes no signal and no locale, and an answer that it does not understand counts as none.
#pragma once

#include <stddef.h>

// 0: `answer` holds the text of the answer. -1: nobody answered; errno says why.
int sluice_ask(char const* run_dir, char const* request, int budget_ms, char* answer, size_t size);

// The string at a key of a JSON object, its escapes resolved as far as they are single bytes.
// -1: it is not there, or no string, or too long.
int sluice_text_at(char const* json, char const* key, char* out, size_t size);

// Appends "key":"text" with what JSON cannot carry as it is replaced by '_': also each byte that is
// no UTF-8, for a job's name is whatever its user wrote.
void sluice_put_text(char* json, size_t size, char const* key, char const* text);
