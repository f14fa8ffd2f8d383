/* SPDX-License-Identifier: Apache-2.0
 * One relay between a cluster and CHILDREN nodes. The cluster is its ledger alone: it may grant the
 * relay anything at any time; lease.pml shows that the sum of ledgers fits. A node owns one unit of
 * escrow. Must hold: what nodes hold by grant, and what the cluster counts on of their escrow, is
 * covered by the cluster's ledger for the relay and by the escrow they have lent. That is what the
 * relay's rules are for: leases nest, acknowledge late, lend what is lent for longer, and lend no
 * escrow that was given out while orphaned. The relay may restart.
 * Reports arrive at once or never; grants never, late, or again. Ages as in lease.pml.
 */
#ifndef CHILDREN
#define CHILDREN 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif

#define L 2               /* lease, and ledger: clocks are true here */
#define UP (L + 1)        /* the relay lends for so long */
#define DOWN (UP + 1)     /* and its nodes for longer */
#define MOST 2
#define OLD (L + 1)
#define NEVER 15
#define most(a, b) ((a) > (b) -> (a) : (b))

typedef holder_t { byte value, left, version; bit life };
typedef ledger_t { byte value, left, version, older, older_left; bit own, older_own };
typedef grant_t { byte answers, version, value, lease; bit life };

/* The cluster: its ledger for the relay, and the escrow it counts on from there. */
ledger_t top;
byte counted, counted_left;
grant_t to_relay;
/* The relay: what it holds, has acknowledged (the age of that version), and lends. */
holder_t relay;
byte acknowledged, lends_left, quiet;
bit life, orphan, crashed;
/* Nodes, the relay's ledger for them (own: given from their escrow), grants on the way. */
holder_t node[CHILDREN];
byte node_lends[CHILDREN], known[CHILDREN];
ledger_t entry[CHILDREN];
grant_t to_node[CHILDREN];

byte i, v, w, x;

#define live(e) (e.left > 0 -> e.value : 0)
#define led(e) most(live(e), (e.older_left > 0 -> e.older : 0))
#define given_out(e) most((e.own -> live(e) : 0), \
                          (e.older_own && e.older_left > 0 -> e.older : 0))
#define uses(n) (node[n].left > 0 -> node[n].value : 0)

inline check() {
  v = 0; w = led(top);
  for (i : 0 .. CHILDREN - 1) {
    v = v + uses(i);
    w = w + (node_lends[i] > 0 -> 1 : 0)
  }
  v = v + (counted_left > 0 -> counted : 0);
  assert(v <= w);
  v = 0; w = 0; i = 0
}

inline lower(t) { if :: t > 0 -> t-- :: else fi }
inline grow(t, last) { if :: t < last -> t++ :: else fi }
inline drop(g) { g.answers = NEVER; g.version = 0; g.value = 0; g.lease = 0; g.life = 0 }
inline pass(e) {
  lower(e.left); lower(e.older_left); grow(e.version, OLD);
  if :: e.left == 0 -> e.value = 0; e.own = 0 :: else fi;
  if :: e.older_left == 0 -> e.older = 0; e.older_own = 0 :: else fi
}
inline travel(g) {
  if
  :: g.answers == NEVER
  :: g.answers != NEVER && g.answers + 1 >= g.lease -> drop(g)
  :: else -> g.answers++; grow(g.version, OLD)
  fi
}

inline tick() {
  d_step {
    pass(top); travel(to_relay);
    lower(relay.left); grow(relay.version, OLD); grow(acknowledged, OLD);
    if :: relay.left == 0 -> relay.value = 0 :: else fi;
    lower(lends_left); lower(quiet); lower(counted_left);
    if :: counted_left == 0 -> counted = 0 :: else fi;
    if :: lends_left > 0 || relay.left > 0 -> orphan = 0 :: else fi;
    for (i : 0 .. CHILDREN - 1) {
      pass(entry[i]); travel(to_node[i]);
      lower(node[i].left); grow(node[i].version, OLD);
      if :: node[i].left == 0 -> node[i].value = 0 :: else fi;
      lower(node_lends[i]); lower(known[i])
    }
    i = 0
  }
}

/* A new version: what it replaces stays in the ledger until acknowledged. */
inline enter(e, what, ticks, from_escrow) {
  if
  :: e.value == what && (e.left > 0 || what == 0) && !(e.own && !from_escrow) ->
    e.left = (what > 0 -> most(e.left, ticks) : 0)
  :: else ->
    e.older_own = (given_out(e) > 0 -> 1 : 0);
    e.older = led(e);
    e.older_left = (e.older > 0 -> most(e.left, e.older_left) : 0);
    e.value = what; e.version = 0; e.left = (what > 0 -> ticks : 0); e.own = from_escrow && what > 0
  fi
}

/* The relay reports: it acknowledges if it may, lends what it may, and is answered anything. */
inline report_up() {
  d_step {
    v = 0; w = 0;
    for (i : 0 .. CHILDREN - 1) {
      v = v + led(entry[i]);
#ifdef BREAK_LEND_NEST
      w = w + (known[i] > 0 -> 1 : 0);
#else
      w = w + (known[i] >= UP -> 1 : 0);
#endif
    }
    i = 0;
    x = (relay.left > 0 -> relay.value : 0);
#ifdef BREAK_EARLY
    acknowledged = relay.version;
#else
    if
#ifndef BREAK_QUIET_ACK
    :: quiet == 0 && v <= x -> acknowledged = relay.version
#else
    :: v <= x -> acknowledged = relay.version
#endif
    :: else
    fi;
#endif
    v = 0;
    for (i : 0 .. CHILDREN - 1) { v = v + given_out(entry[i]) }
#ifndef BREAK_LEND_USED
    w = (quiet > 0 || v >= w -> 0 : w - v);
#endif
    i = 0; v = 0; x = 0;
    orphan = 0; lends_left = UP
  }
  if
  :: true -> w = 0                                /* lost */
  :: d_step {
       counted = w; counted_left = (w > 0 -> UP : 0); w = 0;
       if :: acknowledged == top.version -> top.older = 0; top.older_left = 0 :: else fi
     }
     if :: v = 0 :: v = 1 :: v = MOST fi;
     d_step {
       if
       :: v != top.value && top.version == 0 -> skip   /* one version a tick */
       :: else ->
         enter(top, v, L, 0);
         to_relay.answers = 0; to_relay.version = top.version; to_relay.value = v;
         to_relay.lease = L; to_relay.life = life
       fi;
       v = 0
     }
  fi
}

inline hear_up() {
  d_step {
    if
    :: to_relay.life == life && to_relay.version <= relay.version ->
      relay.left = (to_relay.value == 0 -> 0 : most(L - to_relay.answers,
                    (to_relay.version == relay.version -> relay.left : 0)));
      relay.value = to_relay.value; relay.version = to_relay.version
    :: else
    fi
  }
}

/* A node reports: lends, and is answered within the relay's budget. */
inline report_down(n) {
  node_lends[n] = DOWN;
  if
  :: true                                          /* lost */
  :: node[n].life != life -> node[n].life = life   /* a welcome: older grants are refused now */
  :: node[n].life == life ->
    if :: v = 0 :: v = 1 :: v = MOST fi;
    d_step {
      known[n] = DOWN;
      if
      :: node[n].version == entry[n].version ->
        entry[n].older = 0; entry[n].older_left = 0; entry[n].older_own = 0
      :: else
      fi;
      if
      :: quiet > 0 && entry[n].left == 0 && uses(n) > 0 ->
        entry[n].value = uses(n); entry[n].left = L; entry[n].version = node[n].version
      :: else
      fi;
      w = (orphan -> 0 : (relay.left > 0 -> relay.value : 0));
      x = 0;
      for (i : 0 .. CHILDREN - 1) {
        if :: orphan && known[i] >= L -> w++ :: else fi;
        if :: i != n -> x = x + led(entry[i]) :: else fi
      }
      if
      :: v > live(entry[n]) && (quiet > 0 || v + x > w) -> v = live(entry[n])
      :: else
      fi;
      x = 0;
      for (i : 0 .. CHILDREN - 1) { if :: i != n -> x = x + live(entry[i]) :: else fi }
      if :: v + x > w -> v = (w > x -> w - x : 0) :: else fi;
#ifdef BREAK_NEST
      w = L;
#else
      w = (orphan -> L : relay.left);
#endif
      if
      :: entry[n].version == 0 && (v != entry[n].value || (entry[n].own && !orphan)) -> skip
      :: else ->
        enter(entry[n], v, w, orphan);
        to_node[n].answers = 0; to_node[n].version = entry[n].version; to_node[n].value = v;
        to_node[n].lease = (v > 0 -> w : L); to_node[n].life = life
      fi;
      i = 0; v = 0; w = 0; x = 0
    }
  fi
}

inline hear_down(n) {
  d_step {
    if
    :: to_node[n].life == node[n].life && to_node[n].version <= node[n].version ->
      node[n].left = (to_node[n].value == 0 -> 0 : most(to_node[n].lease - to_node[n].answers,
                      (to_node[n].version == node[n].version -> node[n].left : 0)));
      node[n].value = to_node[n].value; node[n].version = to_node[n].version
    :: else
    fi
  }
}

/* With its memory the relay knows what it holds; what its nodes hold it must learn. */
inline crash() {
  crashed = 1; life = 1; quiet = L; orphan = 0;
  if :: true :: relay.value = 0; relay.left = 0; relay.version = OLD; acknowledged = OLD fi;
  d_step {
    drop(to_relay);
    for (i : 0 .. CHILDREN - 1) {
      entry[i].value = 0; entry[i].left = 0; entry[i].version = OLD; entry[i].own = 0;
      entry[i].older = 0; entry[i].older_left = 0; entry[i].older_own = 0; known[i] = 0
    }
    i = 0
  }
}

active proctype world() {
  byte n;
  d_step {
    drop(to_relay); top.version = OLD; relay.version = OLD; acknowledged = OLD;
    for (i : 0 .. CHILDREN - 1) {
      drop(to_node[i]); entry[i].version = OLD; node[i].version = OLD
    }
    i = 0
  }
  do
  :: atomic { tick(); check() }
  :: atomic { report_up(); check() }
  :: atomic { to_relay.answers != NEVER -> hear_up(); check() }
  :: atomic { select(n : 0 .. CHILDREN - 1); report_down(n); check(); n = 0 }
  :: atomic {
       select(n : 0 .. CHILDREN - 1);
       if :: to_node[n].answers != NEVER -> hear_down(n); check() :: else fi; n = 0
     }
  :: atomic { lends_left == 0 && relay.left == 0 && !orphan -> orphan = 1 }
#if CRASHES > 0
  :: atomic { !crashed && relay.value > 0 -> crash(); check() }
#endif
  od
}
