// SPDX-License-Identifier: Apache-2.0
// Takes back the macros that messages.def was read with, so that it can be read again.
// Deliberately without an include guard.
#undef HEADER
#undef HEADER_END
#undef MESSAGE
#undef ONE
#undef MANY
#undef FIELD
#undef NAME
#undef SPARE
#undef MAY_END
#undef END
#undef TEXT
#undef DONE
