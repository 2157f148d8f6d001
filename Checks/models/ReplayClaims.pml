/*
 * Claims on Redis: no request is accepted twice, whatever happens to servers, links and nodes.
 *
 * One request with any date is enough, because a replay concerns only that request. Two nodes judge it any number of times, while
 * a master and a replica crash, come back with all, some or none of their data, are cut off from each other, fail over and fail
 * back.
 *
 * In the code, ClaimHistory.swift (AuthService) has this rule: LIFE stands for ReplayClaim.life, LEASE for ClaimHistory.lease, and
 * refusesUpTo for the end of an interval of HistoryLoss.
 *
 * `spin -a ReplayClaims.pml` and the compiled search visit every order of these steps. Each -D below takes away one part of the
 * rule and must make the search find a replay: `run` checks that too.
 *
 *   WITHOUT_INCARNATION  an epoch is not bound to the server's process and its promotion
 *   WITHOUT_ATOMIC_CHECK the epoch is compared when a node connects, not with each claim
 *   WITHOUT_LEASE        a node uses a master for as long as it is connected to it
 *   WITHOUT_MARGIN       a new epoch does not count the leases on the master before it
 *   WITHOUT_FUTURE       a new epoch refuses only what is dated before it, not what was dated ahead
 */

#define END    5 /* the clock's last value */
#define LIFE   3 /* how long after its date a request is accepted */
#define AHEAD  1 /* how far ahead a request may be dated */
#define LEASE  2 /* how long a node uses a master after a majority named it last */
#define STEPS  3 /* faults in one run */
#define NONE   2

#ifdef WITHOUT_MARGIN
#define MARGIN 0
#else
#define MARGIN (LEASE - 1) /* the last moment at which it took one */
#endif
#ifdef WITHOUT_FUTURE
#define WINDOW 0
#else
#define WINDOW AHEAD
#endif

typedef Server {
    bool master;
    byte incarnation;  /* run_id and master_replid: new with each start and each promotion */
    /* What replicas get: */
    bool claimed;
    byte epoch;        /* 0: none */
    byte epochOf;      /* the incarnation under which it began */
    byte refusesUpTo;  /* requests dated no later are refused: their claims may be lost */
}

byte clock;
byte date;             /* of the request; any moment of the clock */
byte accepted;
Server server[2];
byte epochs, incarnations;
byte cutOff = NONE;    /* the master that no majority names any more */
byte cutAt;
byte connectedTo[2];   /* of the nodes */
byte knownEpoch[2];

/* A replica gets all that its master has written, or nothing of it. */
inline replicate(from, to) {
    server[to].claimed = server[from].claimed;
    server[to].epoch = server[from].epoch;
    server[to].epochOf = server[from].epochOf;
    server[to].refusesUpTo = server[from].refusesUpTo;
}

#ifdef WITHOUT_LEASE
#define takesWrites(s) (server[s].master)
#else
#define takesWrites(s) (server[s].master && (s != cutOff || clock < cutAt + LEASE))
#endif

#ifdef WITHOUT_INCARNATION
#define isCurrent(s) (server[s].epoch != 0)
#else
#define isCurrent(s) (server[s].epoch != 0 && server[s].epochOf == server[s].incarnation)
#endif

#ifdef WITHOUT_ATOMIC_CHECK
#define matches(me, s) (true)
#else
#define matches(me, s) (server[s].epoch == knownEpoch[me] && isCurrent(s))
#endif

proctype Node(byte me) {
    byte s;
    end:
    do
    /* A node connects to a master. If the master's epoch began under another incarnation, the node begins a new epoch. */
    :: atomic {
        connectedTo[me] == NONE ->
        if :: s = 0 :: s = 1 fi;
        if
        :: takesWrites(s) ->
            if
            :: !isCurrent(s) && epochs < 8 ->
                epochs++;
                server[s].epoch = epochs;
                server[s].epochOf = server[s].incarnation;
                server[s].refusesUpTo = clock + MARGIN + WINDOW
            :: else
            fi;
            if
            :: isCurrent(s) -> connectedTo[me] = s; knownEpoch[me] = server[s].epoch
            :: else
            fi
        :: else
        fi;
        s = 0
       }
    /* A node claims, with one script. */
    :: atomic {
        connectedTo[me] != NONE ->
        s = connectedTo[me];
        if
        :: !takesWrites(s) -> connectedTo[me] = NONE; knownEpoch[me] = 0
        :: takesWrites(s) && !matches(me, s) -> connectedTo[me] = NONE; knownEpoch[me] = 0
        :: takesWrites(s) && matches(me, s) && date > server[s].refusesUpTo && !server[s].claimed &&
            date <= clock + AHEAD && clock < date + LIFE ->
            server[s].claimed = true;
            accepted++;
            assert(accepted <= 1)
        :: else
        fi;
        s = 0
       }
    od
}

inline started(s) {
    incarnations++;
    server[s].incarnation = incarnations
}

proctype Faults() {
    byte s, steps;
    end:
    do
    :: atomic { clock < END -> clock++ }
    /* The replica gets the master's writes, at any time. */
    :: atomic {
        cutOff == NONE ->
        if
        :: server[0].master -> replicate(0, 1)
        :: else -> replicate(1, 0)
        fi
       }
    /* A server dies and comes back with all its data, with none, or as it was before its last claim. Nodes that were
       connected to it must connect again. */
    :: atomic {
        steps < STEPS -> steps++;
        if :: s = 0 :: s = 1 fi;
        started(s);
        if
        :: skip
        :: server[s].claimed = false
        :: server[s].claimed = false; server[s].epoch = 0
        fi;
        if :: connectedTo[0] == s -> connectedTo[0] = NONE; knownEpoch[0] = 0 :: else fi;
        if :: connectedTo[1] == s -> connectedTo[1] = NONE; knownEpoch[1] = 0 :: else fi;
        s = 0 /* one state less */
       }
    /* The majority no longer sees the master. Later it sees the master again. */
    :: atomic {
        steps < STEPS && cutOff == NONE -> steps++;
        if :: server[0].master -> cutOff = 0 :: else -> cutOff = 1 fi;
        cutAt = clock
       }
    :: atomic { cutOff != NONE && !server[1 - cutOff].master -> cutOff = NONE; cutAt = 0 }
    /* The replica is promoted: by an operator while the link works, or because the majority does not see the master. The old master
       does not know yet, and nodes stay connected to it. A lease begins with a question that a
       majority answers, so it began before the promotion: `cutAt` bounds it. */
    :: atomic {
        steps < STEPS && !(server[0].master && server[1].master) -> steps++;
        if
        :: cutOff == NONE -> cutAt = clock; if :: server[0].master -> cutOff = 0 :: else -> cutOff = 1 fi
        :: else
        fi;
        server[1 - cutOff].master = true;
        started(1 - cutOff)
       }
    /* The old master learns of the promotion, and becomes a replica with the data of the new master. */
    :: atomic {
        server[0].master && server[1].master ->
        server[cutOff].master = false;
        replicate(1 - cutOff, cutOff);
        cutOff = NONE;
        cutAt = 0
       }
    od
}

init {
    atomic {
        server[0].master = true;
        started(0);
        started(1);
        connectedTo[0] = NONE;
        connectedTo[1] = NONE;
        select(date : 0 .. END);
        run Node(0);
        run Node(1);
        run Faults()
    }
}
