! SPDX-License-Identifier: Apache-2.0
! Small records of a Fortran program, as scripts/experiments/small-io runs it: records KIND COUNT.
program records
  implicit none
  integer, parameter :: u = 10, doubles = 8  ! a record of direct access has 64 bytes
  character(len=32) :: kind, word
  integer :: count, i
  real(8) :: all(doubles)
  call get_command_argument(1, kind)
  call get_command_argument(2, word)
  read (word, *) count
  select case (kind)
  case ('formatted', 'flushed')
    open (u, file='out', form='formatted', status='replace')
    do i = 1, count
      write (u, '(i8,f12.4)') i, i / 7d0
      if (kind == 'flushed') flush (u)
    end do
  case ('stream', 'stream-flushed')
    open (u, file='out', access='stream', form='unformatted', status='replace')
    do i = 1, count
      write (u) i / 7d0
      if (kind == 'stream-flushed') flush (u)
    end do
  case ('direct', 'scattered')
    open (u, file='out', access='direct', recl=8 * doubles, form='unformatted', status='replace')
    do i = 0, count - 1
      all = i / 7d0
      if (kind == 'direct') write (u, rec=i + 1) all
      if (kind == 'scattered') write (u, rec=mod(i * 7_8, int(count, 8)) + 1) all
    end do
  case default
    error stop 'no such kind'
  end select
  close (u)
end program
