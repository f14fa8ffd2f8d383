// SPDX-License-Identifier: Apache-2.0
// vfork returns twice on the same stack, so no compiled function may stand between it and the
// program: the child would overwrite the frame the parent returns through. The return address
// travels in a register, which the kernel keeps for both. The child marks the thread (its memory
// and TLS are the parent's): is_vfork_child, byte 4 of `self`. The parent, which runs only after
// the child has gone, clears the mark.
#if defined(__x86_64__)
        .text
        .globl  vfork
        .globl  __vfork
        .type   vfork, @function
        .type   __vfork, @function
vfork:
__vfork:
        .cfi_startproc
        cmpb    $0, sluice_gathers(%rip)        // small/gather.cc
        je      3f
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    sluice_before_vfork
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
3:      movq    sluice_self@gottpoff(%rip), %rdx
        movzbl  %fs:4(%rdx), %esi       // a vfork child may vfork itself
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        .cfi_register %rip, %rdi
        movl    $58, %eax
        syscall
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        testq   %rax, %rax
        jne     1f
        movb    $1, %fs:4(%rdx)
        ret
1:      movb    %sil, %fs:4(%rdx)
        cmpb    $0, sluice_gathers(%rip)
        je      4f
        pushq   %rax
        .cfi_adjust_cfa_offset 8
        call    sluice_after_vfork
        popq    %rax
        .cfi_adjust_cfa_offset -8
4:      testq   %rax, %rax
        js      2f
        ret
2:      movq    %rax, %rdi
        jmp     sluice_vfork_failed
        .cfi_endproc
        .size   vfork, .-vfork
        .size   __vfork, .-__vfork
#elif defined(__aarch64__)
        .text
        .globl  vfork
        .globl  __vfork
        .type   vfork, %function
        .type   __vfork, %function
vfork:
__vfork:
        .cfi_startproc
        adrp    x5, sluice_gathers              // small/gather.cc
        ldrb    w5, [x5, #:lo12:sluice_gathers]
        cbz     w5, 3f
        stp     x29, x30, [sp, #-16]!
        .cfi_adjust_cfa_offset 16
        .cfi_rel_offset x30, 8
        bl      sluice_before_vfork
        ldp     x29, x30, [sp], #16
        .cfi_adjust_cfa_offset -16
        .cfi_restore x30
3:      adrp    x5, :gottprel:sluice_self
        ldr     x5, [x5, #:gottprel_lo12:sluice_self]
        mrs     x6, tpidr_el0
        add     x5, x5, #4
        ldrb    w7, [x6, x5]            // a vfork child may vfork itself
        mov     x0, #0x4111             // CLONE_VM | CLONE_VFORK | SIGCHLD
        mov     x1, #0
        mov     x2, #0
        mov     x3, #0
        mov     x4, #0
        mov     x8, #220                // clone
        svc     #0
        cmp     x0, #0
        csinc   w7, w7, wzr, ne         // 1 in the child
        strb    w7, [x6, x5]
        cbz     x0, 2f
        adrp    x5, sluice_gathers
        ldrb    w5, [x5, #:lo12:sluice_gathers]
        cbz     w5, 1f
        stp     x0, x30, [sp, #-16]!
        .cfi_adjust_cfa_offset 16
        .cfi_rel_offset x30, 8
        bl      sluice_after_vfork
        ldp     x0, x30, [sp], #16
        .cfi_adjust_cfa_offset -16
        .cfi_restore x30
1:      tbnz    x0, #63, 4f
2:      ret
4:      b       sluice_vfork_failed
        .cfi_endproc
        .size   vfork, .-vfork
        .size   __vfork, .-__vfork
#endif
        .section .note.GNU-stack, "", %progbits
