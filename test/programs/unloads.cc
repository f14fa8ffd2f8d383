// SPDX-License-Identifier: Apache-2.0
// build: -shared -fPIC
// A library that loads the plug-in $PLUG before anybody else's constructor runs, and unloads it
// when it is told to.
#include <dlfcn.h>
#include <stdlib.h>

static void* plug;

__attribute__((constructor)) static void load() {
  char const* const path = getenv("PLUG");
  if (path != nullptr) plug = dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

extern "C" int unload() { return plug == nullptr ? -1 : dlclose(plug); }
