/* SPDX-License-Identifier: Apache-2.0
 * Escrow, lends and leases between PARENTS clusters and NODES nodes, whatever the allocation wants.
 *
 * The capacity is one unit of escrow per node. Time is a tick that all share, but a node's lease may
 * run a tick too long and its lend end a tick too early: clocks that drift. Instead of time stamps
 * everything carries its age, so that the states are finite; of two versions the younger is newer.
 * The network keeps the last message of each direction of each edge and delivers it never, late or
 * again and again. A grant refused for its age vanishes; so does a report nobody would believe.
 * Must hold: what nodes may use never exceeds the capacity. BREAK_x turns a rule off.
 */
#ifndef NODES
#define NODES 2
#endif
#ifndef PARENTS
#define PARENTS 1
#endif
#ifndef CRASHES
#define CRASHES 0        /* restarts of a parent, with empty memory */
#endif
#ifndef BOOTS
#define BOOTS 0          /* reboots of a node: it forgets what it lent */
#endif

#ifdef SMALL             /* every report lends, and the allocation wants all or nothing */
#define MAY_WANT(v) if :: v = 0 :: v = NODES fi
#else
#define MAY_WANT(v) if :: v = 0 :: v = 1 :: v = NODES fi
#endif

#define EDGES (PARENTS * NODES)
#define EDGE(p, n) ((p) * NODES + (n))

#define L 1              /* lease, from sending the report that is answered */
#ifdef BREAK_MARGIN
#define LEDGER L
#else
#define LEDGER (L + 1)   /* the same on the parent's clock, from issuing */
#endif
#define A 1              /* a report whose echo is older is not believed */
#define M (LEDGER + A + 1 + (LEDGER == L))
#define NEVER 15         /* an age: no such message */
#define OLD (L + 2)      /* versions older than this have ended everywhere */

typedef node_t {
  byte parent;           /* whom it reports to, obeys and lends to */
  byte lend;             /* ticks until the escrow is its own again */
  byte held, left;       /* by grant, and for how long */
  byte version;          /* age of the version applied */
  byte heard;            /* age of the newest message from `parent`, NEVER */
  bit incarnation;       /* and of which life of it */
};
typedef report_t { byte age, echo, version, held; bit incarnation, lends };
typedef grant_t { byte age, answers, version, value; bit incarnation };
typedef ledger_t {       /* a parent's entry for a child: newest grant, and what may still be held */
  byte value, version, left;
  byte older, older_left;
  byte lend;             /* ticks for which the child surely lends */
};

node_t node[NODES];
report_t report[EDGES];
grant_t grant[EDGES];
ledger_t entry[EDGES];
bit life[PARENTS];
byte quiet[PARENTS];
byte crashes, boots;

/* Scratch, zero between steps. */
byte i, s, v, budget, others, current;

#define usable(n) ((node[n].lend == 0 -> 1 : 0) + (node[n].left > 0 -> node[n].held : 0))
#define most(a, b) ((a) > (b) -> (a) : (b))
#define issued(e) (entry[e].left > 0 -> entry[e].value : 0)
#define led(e) most(issued(e), (entry[e].older_left > 0 -> entry[e].older : 0))

inline check() {
  v = 0;
  for (i : 0 .. NODES - 1) { v = v + usable(i) }
  assert(v <= NODES);
  v = 0; i = 0
}

inline lower(x) { if :: x > 0 -> x-- :: else fi }
inline grow(x, last) { if :: x < last -> x++ :: else fi }
inline no_report(e) {
  report[e].age = NEVER; report[e].echo = 0; report[e].version = 0; report[e].held = 0;
  report[e].incarnation = 0; report[e].lends = 0
}
inline no_grant(e) {
  grant[e].age = NEVER; grant[e].answers = 0; grant[e].version = 0; grant[e].value = 0;
  grant[e].incarnation = 0
}
inline detach(n) {
  node[n].held = 0; node[n].left = 0; node[n].version = OLD; node[n].heard = NEVER;
  node[n].incarnation = 0
}

inline tick() {
  d_step {
    for (i : 0 .. NODES - 1) {
      lower(node[i].lend); lower(node[i].left);
      if :: node[i].left == 0 -> node[i].held = 0 :: else fi;
      grow(node[i].version, OLD);
      if :: node[i].heard < A -> node[i].heard++ :: else -> node[i].heard = NEVER fi
    }
    for (i : 0 .. EDGES - 1) {
      lower(entry[i].left); lower(entry[i].older_left); lower(entry[i].lend);
      if :: entry[i].left == 0 -> entry[i].value = 0 :: else fi;
      if :: entry[i].older_left == 0 -> entry[i].older = 0 :: else fi;
      if :: entry[i].lend < LEDGER -> entry[i].lend = 0 :: else fi;   /* counts for no grant */
      grow(entry[i].version, OLD);
      if
      :: report[i].age == NEVER
      :: report[i].age != NEVER && report[i].age >= A -> no_report(i)
      :: else ->
        report[i].age++; grow(report[i].version, OLD);
        if :: report[i].echo < A -> report[i].echo++ :: else -> report[i].echo = NEVER fi
      fi;
      if
      :: grant[i].age == NEVER
#ifdef BREAK_ANCHOR
      :: grant[i].age != NEVER && grant[i].answers >= L + 1 -> no_grant(i)
#else
      :: grant[i].age != NEVER && grant[i].answers >= L - 1 -> no_grant(i)
#endif
      :: else -> grant[i].age++; grant[i].answers++; grow(grant[i].version, OLD)
      fi
    }
    for (i : 0 .. PARENTS - 1) { lower(quiet[i]) }
    i = 0
  }
}

/* Every report may lend or not. Who lends starts M again; its clock may be a tick fast. */
inline send_report(n) {
  if
#ifndef SMALL
  :: report[EDGE(node[n].parent, n)].lends = 0
#endif
  :: report[EDGE(node[n].parent, n)].lends = 1;
        if :: node[n].lend = M :: node[n].lend = most(M - 1, node[n].lend) fi
  fi;
  d_step {
    s = EDGE(node[n].parent, n);
    report[s].age = 0; report[s].echo = node[n].heard; report[s].version = node[n].version;
    report[s].held = node[n].held; report[s].incarnation = node[n].incarnation;
    s = 0
  }
}

inline believe(p, n) {
  if
#ifdef BREAK_ECHO
  :: true ->
    if :: report[s].lends -> entry[s].lend = M - 1 :: else fi;
#else
  :: report[s].echo != NEVER && report[s].incarnation == life[p] ->
    if :: report[s].lends -> entry[s].lend = most(entry[s].lend, M - 1 - report[s].echo)
       :: else fi;
#endif
    if :: report[s].version == entry[s].version -> entry[s].older = 0; entry[s].older_left = 0
       :: else fi;
    if :: quiet[p] > 0 && entry[s].left == 0 && report[s].held > 0 ->   /* learnt */
         entry[s].value = report[s].held; entry[s].left = LEDGER;
         entry[s].version = report[s].version
       :: else fi
  :: else
  fi
}

inline add_up(p, n) {
  budget = 0; others = 0; current = 0;
  for (i : 0 .. NODES - 1) {
#ifdef BREAK_LEND
    budget++;
#else
    if :: entry[EDGE(p, i)].lend >= LEDGER -> budget++ :: else fi;
#endif
    if
    :: i != n ->
      current = current + issued(EDGE(p, i));
#ifdef BREAK_ACK
      others = others + issued(EDGE(p, i))
#else
      others = others + led(EDGE(p, i))
#endif
    :: else
    fi
  }
  i = 0
}

/* The allocation may want anything. At most one new version per tick, so that ages tell them apart. */
inline answer(p, n) {
  d_step { s = EDGE(p, n); believe(p, n); add_up(p, n) }
  MAY_WANT(v);
  d_step {
    if :: report[s].echo == NEVER || report[s].incarnation != life[p] -> v = 0 :: else fi;
    if
    :: v > issued(s) && quiet[p] > 0 -> v = issued(s)
    :: v > issued(s) && quiet[p] == 0 && others + v > budget ->
      v = (budget > others -> most(issued(s), budget - others) : issued(s))
    :: else
    fi;
    if :: current + v > budget -> v = (budget > current -> budget - current : 0) :: else fi;
    if
    :: v != issued(s) && entry[s].version == 0 -> v = NEVER
    :: v != issued(s) && entry[s].version != 0 ->
      entry[s].older = most(led(s), 0);
      entry[s].older_left = (entry[s].older > 0 -> most(entry[s].left, entry[s].older_left) : 0);
      entry[s].value = v; entry[s].version = 0;
      entry[s].left = (v > 0 -> LEDGER : 0)
    :: else -> entry[s].left = (v > 0 -> LEDGER : 0)
    fi;
    if
    :: v != NEVER ->
      grant[s].age = 0; grant[s].answers = report[s].age; grant[s].version = entry[s].version;
      grant[s].value = v; grant[s].incarnation = life[p]
    :: else
    fi;
    v = 0; s = 0; budget = 0; others = 0; current = 0
  }
}

#define in_order(e, n) \
  (grant[e].incarnation != node[n].incarnation || grant[e].version <= node[n].version)

inline obey(p, n) {
  s = EDGE(p, n);
  if
  :: node[n].parent == p && grant[s].incarnation >= node[n].incarnation && in_order(s, n) ->
    d_step {
      if
      :: grant[s].incarnation > node[n].incarnation || node[n].heard > grant[s].age ->
        node[n].heard = grant[s].age
      :: else
      fi;
#ifdef BREAK_ANCHOR
      node[n].left = (grant[s].value > 0 -> L : 0);
#else
      node[n].left = (grant[s].value == 0 -> 0 :
        most(L - grant[s].answers, (grant[s].version == node[n].version &&
                                    grant[s].incarnation == node[n].incarnation -> node[n].left : 0)));
#endif
      node[n].held = grant[s].value; node[n].version = grant[s].version;
      node[n].incarnation = grant[s].incarnation
    }
    if
    :: node[n].left > 0 && node[n].left == L - grant[s].answers -> node[n].left++  /* slow clock */
    :: true
    fi
  :: else
  fi;
  s = 0
}

/* To another parent only when nothing is lent. */
inline turn(n) {
  d_step {
    node[n].parent = (node[n].parent + 1) % PARENTS;
    detach(n)
  }
}

/* Who has given nothing has nothing to forget. */
#define gives(p) (issued(EDGE(p, 0)) + issued(EDGE(p, NODES - 1)) > 0)

inline restart(p) {
  d_step {
    crashes++;
    for (i : EDGE(p, 0) .. EDGE(p, NODES - 1)) {
      entry[i].value = 0; entry[i].version = OLD; entry[i].left = 0;
      entry[i].older = 0; entry[i].older_left = 0; entry[i].lend = 0
    }
    life[p] = 1;
#ifndef BREAK_QUIET
    quiet[p] = LEDGER;
#endif
    i = 0
  }
}

/* Grants for the former life are refused; its reports are on their way still. */
inline boot(n) {
  d_step {
    boots++;
    detach(n);
#ifdef BREAK_BOOT
    node[n].lend = 0;
#else
    node[n].lend = M;
#endif
    for (i : 0 .. PARENTS - 1) { no_grant(EDGE(i, n)); report[EDGE(i, n)].age =
      (report[EDGE(i, n)].age == NEVER -> NEVER : A) }
    i = 0
  }
}

active proctype world() {
  byte n, p;
  d_step {
    for (i : 0 .. NODES - 1) { detach(i) }
    for (i : 0 .. EDGES - 1) { no_report(i); no_grant(i); entry[i].version = OLD }
    i = 0
  }
  do
#if CRASHES > 0
  :: crashes < CRASHES -> atomic { select(p : 0 .. PARENTS - 1);
       if :: life[p] == 0 && gives(p) -> restart(p) :: else fi; p = 0 }
#endif
#if BOOTS > 0
  :: boots < BOOTS -> atomic { select(n : 0 .. NODES - 1); boot(n); check(); n = 0 }
#endif
  :: atomic { tick(); check() }
  :: atomic { select(n : 0 .. NODES - 1); send_report(n); n = 0 }
  :: atomic {
       select(n : 0 .. NODES - 1); select(p : 0 .. PARENTS - 1);
       if :: report[EDGE(p, n)].age != NEVER -> answer(p, n) :: else fi;
       n = 0; p = 0
     }
  :: atomic {
       select(n : 0 .. NODES - 1); select(p : 0 .. PARENTS - 1);
       if :: grant[EDGE(p, n)].age != NEVER -> obey(p, n); check() :: else fi;
       n = 0; p = 0
     }
#if PARENTS > 1
  :: atomic {
       select(n : 0 .. NODES - 1);
#ifndef BREAK_TURN
       if :: node[n].lend == 0 -> turn(n) :: else fi;
#else
       turn(n);
#endif
       n = 0
     }
#endif
  od
}
