// SPDX-License-Identifier: Apache-2.0
// dlsym, dlvsym, dlopen and dlmopen, which look at who calls them: with RTLD_NEXT, and for the
// paths of that object. So these are jumps, and the loader's own return to the caller. What looks
// at the arguments before, and says where to jump to, is in small/handles.cc. Null: there is no
// such function, and that is the answer.
#if defined(__x86_64__)
        .macro PASS_ON name
        .globl  \name
        .type   \name, @function
\name:
        .cfi_startproc
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        pushq   %rdx
        .cfi_adjust_cfa_offset 8
        call    sluice_before_\name
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testq   %rax, %rax
        je      1f
        jmp     *%rax
1:      ret
        .cfi_endproc
        .size   \name, .-\name
        .endm
#elif defined(__aarch64__)
        .macro PASS_ON name
        .globl  \name
        .type   \name, %function
\name:
        .cfi_startproc
        stp     x29, x30, [sp, #-48]!
        .cfi_adjust_cfa_offset 48
        .cfi_rel_offset x30, 8
        stp     x0, x1, [sp, #16]
        str     x2, [sp, #32]
        bl      sluice_before_\name
        mov     x16, x0
        ldr     x2, [sp, #32]
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #48
        .cfi_adjust_cfa_offset -48
        .cfi_restore x30
        cbz     x16, 1f
        br      x16
1:      mov     x0, #0
        ret
        .cfi_endproc
        .size   \name, .-\name
        .endm
#endif
        .text
        PASS_ON dlsym
        PASS_ON dlvsym
        PASS_ON dlopen
        PASS_ON dlmopen
        .section .note.GNU-stack, "", %progbits
