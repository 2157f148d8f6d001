/*
 * Second claims in a Redis Cluster: no request is accepted twice, although a part of a Cluster gets no new id when its owner changes.
 *
 * PostgreSQL keeps its data: the mark of its clock, and second claims. Its clock may also jump ahead. Two Redis servers take turns as the
 * owner of one part, with the claims or without, while nodes still use the previous owner. The owner may also restart, or lose its data
 * while nodes stay connected. A replica that is promoted accepts scripts a moment before the masters name it. Two nodes claim. The first
 * may pause between all its steps: it reads PostgreSQL's clock, asks for the owner, begins or finds the epoch, gets the unclaimed end, and
 * records it. The second does such a round in one step. It may run an older version, which claims by its latest reading. One request is
 * enough, because a replay concerns only that request. Its date is acceptable from the beginning, or a moment later.
 *
 * Majorities are assumed, not searched: there is one owner at a time, and a question for it is one step. A second promotion within a lease
 * of the previous one is not searched either. Redis.md, What remains, describes it.
 *
 * In the code, SecondClaim.swift (AuthService) has this rule: NEAR stands for ClaimHistory.leastWindow, SETTLING for
 * SecondClaim.settling, LIFE for ReplayClaim.life and LEASE for ClaimHistory.lease.
 *
 * Each -D below takes away one part of the rule and must make the search find a replay: `run` checks that too.
 *
 *   WITHOUT_BOUND_READING  a node claims by its latest reading, not by the one from before its question for the owner
 *   WITHOUT_LATER_MARK     the mark is that of the round's beginning, before the owner was named
 *   WITHOUT_EARLIER_EPOCH  a node that begins an epoch gets the unclaimed end in the same round
 *   WITHOUT_SECOND_CLAIM   requests dated ahead are claimed only in Redis
 *   WITHOUT_LOOK_UP        dates after the unclaimed end are looked up only in Redis
 *   WITHOUT_EPOCH_ID       a claim does not compare the epoch's id with that of the node's route
 *   WITHOUT_SETTLING       the interval is shortened although a node that does not bind its readings may claim
 */

#define LIFE     1 /* how long after its date a request is accepted */
#ifndef AHEAD
#define AHEAD    2 /* how far ahead a request may be dated */
#endif
#define NEAR     1 /* how far ahead of PostgreSQL's clock a request is claimed in Redis alone */
#define LEASE    2 /* how long a node uses a server after it asked, and an id after it read it */
#define MARGIN   (LEASE - 1)
#ifndef JUMPS
#define JUMPS    1 /* of PostgreSQL's clock, in one run */
#endif
#define SETTLING (LEASE + JUMPS)
#ifndef LOSSES
#define LOSSES   1 /* in one run; -DAHEAD=3 and -DLOSSES=2 -DJUMPS=0 take longer */
#endif
#define NEVER    31

#ifdef WITHOUT_BOUND_READING
#define isBound(me) (false)
#else
#define isBound(me) (me == 0 || !isOlder) /* else it reads the clock just before it claims */
#endif
#ifdef WITHOUT_SECOND_CLAIM
#define isAhead(me) (false)
#else
#define isAhead(me) (date > (isBound(me) -> reading[me] : present) + NEAR)
#endif
#ifdef WITHOUT_LOOK_UP
#define isLookedUp(s) (false)
#else
#define isLookedUp(s) (server[s].end != NEVER && date > server[s].end && date <= server[s].refusesUpTo)
#endif
#ifdef WITHOUT_LATER_MARK
#define mark roundReading
#else
#define mark present
#endif
#ifdef WITHOUT_EARLIER_EPOCH
#define mayAsk(s) (true)
#else
#define mayAsk(s) (knownEpoch == server[s].epoch)
#endif
#ifdef WITHOUT_SETTLING
#define endOf(m) (m + NEAR)
#else
#define endOf(m) (present >= unboundUntil -> m + NEAR : NEVER)
#endif

typedef Server {
    bool claimed;
    byte epoch = 1;
    bool isCurrent;    /* its epoch is that of its data */
    byte refusesUpTo;  /* the whole interval; 0: nothing was lost */
    byte end = NEVER;  /* the unclaimed end */
}

byte date;             /* of the request */
byte clock;
byte accepted;
Server server[2];
bit owner;
byte movedAt = NEVER;  /* when it became the owner */
bool isPromoted;       /* the other server, which is not named yet */
byte epochs = 1;
/* In PostgreSQL: */
byte present;          /* its clock, which is the mark too */
byte jumps;
byte unboundUntil;
bool claimedSecond;
/* Of the nodes: */
bool isOlder;          /* the second one */
bit used[2];           /* the server of its route */
byte epoch[2];         /* the epoch of its route; 0: it has none */
byte reading[2];       /* from before it asked for the owner */
byte until[2];         /* the end of its lease */
bool isWaiting[2];     /* Redis accepted, PostgreSQL was not asked yet */
/* Of the first node's round: */
byte step;             /* 0: none, 1: it begins, 2: the owner is named, 3: the epoch is there, 4: it has the unclaimed end */
byte roundReading, roundUntil, newEnd, newEpoch;
bit named;
byte lastEpoch;        /* of its last route */
byte knownEpoch;       /* the same, when it asked for the owner */

#define refuses(s) (server[s].end == NEVER -> date <= server[s].refusesUpTo : date <= server[s].end)

inline begin(s) {
    if
    :: !server[s].isCurrent ->
        epochs++;
        server[s].epoch = epochs;
        server[s].isCurrent = true;
        server[s].refusesUpTo = clock + MARGIN + AHEAD;
        server[s].end = NEVER
    :: else
    fi
}

inline publish(me, s, r, u) { used[me] = s; epoch[me] = server[s].epoch; reading[me] = r; until[me] = u }

#ifdef WITHOUT_EPOCH_ID
#define isOfRoute(me) (true)
#else
#define isOfRoute(me) (server[used[me]].epoch == epoch[me])
#endif
#define mayClaim(me) (epoch[me] != 0 && clock < until[me] && !isWaiting[me] && isOfRoute(me) && \
    !refuses(used[me]) && !server[used[me]].claimed && date <= clock + AHEAD && clock < date + LIFE)

inline claim(me) {
    server[used[me]].claimed = true;
    if
    :: isAhead(me) || isLookedUp(used[me]) -> isWaiting[me] = true
    :: else -> accepted++; assert(accepted <= 1)
    fi
}

inline claimInSecond(me) {
    isWaiting[me] = false;
    if :: !claimedSecond -> claimedSecond = true; accepted++; assert(accepted <= 1) :: else fi
}

#define forgetRound() step = 0; roundReading = 0; roundUntil = 0; newEnd = 0; newEpoch = 0; named = 0; knownEpoch = 0

proctype First() {
    end:
    do
    :: atomic { step == 0 -> step = 1; roundReading = present }
    :: atomic { step == 1 -> step = 2; named = owner; roundUntil = clock + LEASE; knownEpoch = lastEpoch }
    /* The first node begins the epoch at the owner, or finds it. */
    :: atomic {
        step == 2 ->
        begin(named);
        publish(0, named, roundReading, roundUntil);
        lastEpoch = server[named].epoch;
        if
        :: mayAsk(named) && server[named].end == NEVER && server[named].refusesUpTo != 0 -> newEpoch = server[named].epoch; step = 3
        :: else -> forgetRound()
        fi
       }
    /* The first node asks PostgreSQL for the unclaimed end. */
    :: atomic {
        step == 3 ->
        newEnd = endOf(mark);
        step = 4
       }
    /* The first node's script arrives at the server. */
    :: atomic {
        step == 4 ->
        if
        :: server[named].epoch == newEpoch && server[named].end == NEVER -> server[named].end = newEnd
        :: else
        fi;
        forgetRound()
       }
    :: atomic { mayClaim(0) -> claim(0) }
    :: atomic { isWaiting[0] -> claimInSecond(0) }
    od
}

proctype Second() {
    end:
    do
    :: atomic {
        !(epoch[1] == server[owner].epoch && used[1] == owner && server[owner].isCurrent && until[1] == clock + LEASE &&
            reading[1] == present && (server[owner].end != NEVER || server[owner].refusesUpTo == 0)) ->
        begin(owner);
        publish(1, owner, present, clock + LEASE);
        if
        :: isOlder -> unboundUntil = present + SETTLING
        :: !isOlder && server[owner].end == NEVER && server[owner].refusesUpTo != 0 -> server[owner].end = endOf(present)
        :: else
        fi
       }
    :: atomic {
        mayClaim(1) -> claim(1);
        if :: isOlder -> unboundUntil = present + SETTLING :: else fi
       }
    :: atomic { isWaiting[1] -> claimInSecond(1) }
    /* A process of the current version replaces the older node. */
    :: atomic { isOlder -> isOlder = false; epoch[1] = 0; reading[1] = 0; until[1] = 0 }
    od
}

proctype Faults() {
    byte losses;
    bit s;
    end:
    do
    /* Values that no step can use any more are set to 0, so that there are fewer states. */
    :: atomic {
        clock < date + LIFE && !isPromoted -> clock++; present++;
        if :: epoch[0] != 0 && clock >= until[0] -> epoch[0] = 0; used[0] = 0; reading[0] = 0; until[0] = 0 :: else fi;
        if :: epoch[1] != 0 && clock >= until[1] -> epoch[1] = 0; used[1] = 0; reading[1] = 0; until[1] = 0 :: else fi
       }
    :: atomic { jumps < JUMPS -> jumps++; present++ }
    /* The owner restarts, with its claims or without: no node has a connection to it any more. */
    :: atomic {
        losses < LOSSES -> losses++;
        server[owner].isCurrent = false;
        if :: skip :: server[owner].claimed = false fi;
        if :: used[0] == owner -> epoch[0] = 0; used[0] = 0; reading[0] = 0; until[0] = 0 :: else fi;
        if :: used[1] == owner -> epoch[1] = 0; used[1] = 0; reading[1] = 0; until[1] = 0 :: else fi
       }
    /* FLUSHALL: the nodes stay connected. */
    :: atomic {
        losses < LOSSES -> losses++;
        server[owner].isCurrent = false;
        server[owner].claimed = false;
        server[owner].epoch = 0;
        server[owner].refusesUpTo = 0;
        server[owner].end = NEVER
       }
    /* The other server is promoted, with all data that it was sent or with none, but not within a lease of the last promotion. */
    :: atomic {
        losses < LOSSES && !isPromoted && (movedAt == NEVER || clock >= movedAt + LEASE) -> losses++;
        s = 1 - owner;
        server[s].epoch = server[owner].epoch;
        server[s].refusesUpTo = server[owner].refusesUpTo;
        server[s].end = server[owner].end;
        server[s].isCurrent = false;
        if :: server[s].claimed = server[owner].claimed :: server[s].claimed = false fi;
        isPromoted = true;
        s = 0
       }
    /* The masters name the promoted server. Nodes use the old owner for a lease. */
    :: atomic { isPromoted -> isPromoted = false; owner = 1 - owner; movedAt = clock }
    od
}

init {
    atomic {
        server[0].isCurrent = true;
        if :: date = AHEAD :: date = AHEAD + 1 fi;
        if :: isOlder = true; unboundUntil = SETTLING :: skip fi;
        /* The first node may be paused since the other server was the owner. */
        if :: step = 2; named = 1 :: skip fi;
        run First();
        run Second();
        run Faults()
    }
}
