/*
 * Second claims: no request is accepted twice, although after a loss of Redis only requests dated a little ahead are refused.
 *
 * PostgreSQL keeps its data: the id of the claims' history, a mark of its clock, and second claims. Two Redis servers lose their
 * data, and one replaces the other while nodes still use it. Two nodes claim. The first may pause between all its steps. The second
 * begins an epoch in one step. It may run an older version, which makes no second claims, until it is replaced. One request is enough,
 * because a replay concerns only that request. It can be accepted at any moment of the clock, so its date is a constant.
 *
 * In the code, SecondClaim.swift (AuthService) has this rule: NEAR stands for ClaimHistory.leastWindow, SETTLING for
 * SecondClaim.settling, LIFE for ReplayClaim.life and LEASE for ClaimHistory.lease. ReplayClaims.pml has the lease of a server.
 *
 * Each -D below takes away one part of the rule and must make the search find a replay: `run` checks that too.
 *
 *   WITHOUT_SECOND_CLAIM  requests dated ahead are claimed only in Redis
 *   WITHOUT_LOOK_UP       dates after the unclaimed end are looked up only in Redis
 *   WITHOUT_NEW_ID        an epoch begins under the id of the previous one
 *   WITHOUT_SETTLING      the interval is shortened although a node without second claims may have claimed
 */

#define LIFE     1 /* how long after its date a request is accepted */
#define AHEAD    3 /* how far ahead a request may be dated */
#define date     AHEAD
#define NEAR     1 /* how far ahead of PostgreSQL's clock a request is claimed in Redis alone */
#define LEASE    2 /* how long a node uses an id after it read it, and a server after another one is the master */
#define MARGIN   (LEASE - 1)
#define SETTLING (MARGIN + AHEAD)
#ifndef LOSSES
#define LOSSES   1 /* in one run; -DLOSSES=2 takes half a minute */
#endif
#define IDS      4
#define NEVER    15

#ifdef WITHOUT_SECOND_CLAIM
#define isAhead(me) (false)
#else
#define isAhead(me) (date > readAt[me] + NEAR)
#endif
#ifdef WITHOUT_LOOK_UP
#define isLookedUp(s) (false)
#else
#define isLookedUp(s) (server[s].end != NEVER && date > server[s].end && date <= server[s].refusesUpTo)
#endif
#ifdef WITHOUT_NEW_ID
#define next(s) (server[s].id == id -> id : id + 1)
#else
#define next(s) (id + 1)
#endif
#ifdef WITHOUT_SETTLING
#define unclaimedEnd (clock + NEAR)
#else
#define unclaimedEnd (clock >= settlesAt -> clock + NEAR : NEVER)
#endif

typedef Server {
    bool claimed;
    byte id = 1;       /* the history that it belongs to; 0: none */
    bool isCurrent;    /* its epoch is that of its data */
    byte refusesUpTo;  /* the whole interval; 0: nothing was lost */
    byte end = NEVER;  /* the unclaimed end */
    bool isFirsts;     /* the first node began its epoch */
}

byte clock;
byte accepted;
Server server[2];
bit master;
byte movedAt;          /* when it became the master */
/* In PostgreSQL: */
byte id = 1;
byte settlesAt;
bool claimedSecond;
/* Of the nodes: */
bool isOlder;          /* the second one */
byte readID[2];
byte readAt[2];        /* PostgreSQL's clock then, which is the mark too */
bool isWaiting[2];     /* Redis accepted, PostgreSQL was not asked yet */
/* Of the first node: the id that it named, the unclaimed end that came with it, the server, and whether it began the epoch there. */
byte named;
byte namedEnd;
bit used;
bool hasBegun;

#define mayUse(me) (readID[me] != 0 && clock < readAt[me] + LEASE)
#define takesWrites(s) (s == master || clock < movedAt + LEASE)
#define refuses(s) (server[s].end == NEVER -> date <= server[s].refusesUpTo : date <= server[s].end)
#define mustBegin(me) (readID[me] == id && !(server[master].isCurrent && server[master].id == id))

inline begin(s, i, by) {
    server[s].id = i;
    server[s].isCurrent = true;
    server[s].refusesUpTo = clock + MARGIN + AHEAD;
    server[s].end = NEVER;
    server[s].isFirsts = by
}

inline forget() { named = 0; namedEnd = 0; used = 0; hasBegun = false }

inline claim(me, s, olds) {
    server[s].claimed = true;
    if
    :: !(olds) && (isAhead(me) || isLookedUp(s)) -> isWaiting[me] = true
    :: else -> accepted++; assert(accepted <= 1)
    fi
}

#define mayClaim(me, s) (mayUse(me) && !isWaiting[me] && takesWrites(s) && server[s].isCurrent && server[s].id == readID[me] && \
    !refuses(s) && !server[s].claimed && clock < date + LIFE)

proctype First() {
    end:
    do
    :: atomic { (readID[0] != id || readAt[0] != clock) -> readID[0] = id; readAt[0] = clock }
    /* The first node names an id in PostgreSQL. */
    :: atomic {
        mayUse(0) && named == 0 && mustBegin(0) && id < IDS ->
        id = next(master);
        named = id; namedEnd = unclaimedEnd; used = master; readID[0] = id; readAt[0] = clock
       }
    /* The first node's script arrives at the server, after any pause. */
    :: atomic {
        named != 0 && !hasBegun ->
        if
        :: takesWrites(used) -> begin(used, named, true); hasBegun = true
        :: else -> forget()
        fi
       }
    /* The first node reads the id. If its epoch is still there, it shortens the interval. */
    :: atomic {
        hasBegun ->
        if
        :: id == named && server[used].isFirsts -> server[used].end = namedEnd
        :: else
        fi;
        forget()
       }
    :: atomic { mayClaim(0, 0) -> claim(0, 0, false) }
    :: atomic { mayClaim(0, 1) -> claim(0, 1, false) }
    :: atomic {
        isWaiting[0] -> isWaiting[0] = false;
        if :: !claimedSecond -> claimedSecond = true; accepted++; assert(accepted <= 1) :: else fi
       }
    od
}

proctype Second() {
    end:
    do
    /* An older node leaves a note that it read the id. */
    :: atomic {
        (readID[1] != id || readAt[1] != clock) -> readID[1] = id; readAt[1] = clock;
        if :: isOlder -> settlesAt = clock + SETTLING :: else fi
       }
    :: atomic {
        mayUse(1) && mustBegin(1) && id < IDS ->
        if
        :: isOlder && server[master].id == id -> begin(master, id, false)
        :: isOlder && server[master].id != id ->
            id++; readID[1] = id; readAt[1] = clock; settlesAt = clock + SETTLING; begin(master, id, false)
        :: !isOlder ->
            id = next(master); readID[1] = id; readAt[1] = clock; begin(master, id, false); server[master].end = unclaimedEnd
        fi
       }
    :: atomic { mayClaim(1, 0) -> claim(1, 0, isOlder) }
    :: atomic { mayClaim(1, 1) -> claim(1, 1, isOlder) }
    :: atomic {
        isWaiting[1] -> isWaiting[1] = false;
        if :: !claimedSecond -> claimedSecond = true; accepted++; assert(accepted <= 1) :: else fi
       }
    :: atomic { isOlder -> isOlder = false; readID[1] = 0; readAt[1] = 0 }
    od
}

proctype Faults() {
    byte losses;
    bit s;
    end:
    do
    /* Values that no step can use any more are set to 0, so that there are fewer states. */
    :: atomic {
        clock < date + LIFE -> clock++;
        if :: readID[0] != 0 && clock >= readAt[0] + LEASE -> readID[0] = 0; readAt[0] = 0 :: else fi;
        if :: readID[1] != 0 && clock >= readAt[1] + LEASE -> readID[1] = 0; readAt[1] = 0 :: else fi
       }
    /* The master restarts: with all that it had, without its last claim, or empty. */
    :: atomic {
        losses < LOSSES -> losses++;
        server[master].isCurrent = false;
        if
        :: skip
        :: server[master].claimed = false
        :: server[master].claimed = false; server[master].id = 0
        fi
       }
    /* The other server becomes the master, with all data that it was sent or with none. Nodes use the old master for a lease. */
    :: atomic {
        losses < LOSSES && (movedAt == 0 || clock >= movedAt + LEASE) -> losses++;
        s = 1 - master;
        server[s].id = server[master].id;
        server[s].isCurrent = false;
        server[s].isFirsts = false;
        if :: server[s].claimed = server[master].claimed :: server[s].claimed = false fi;
        master = s; movedAt = clock;
        s = 0
       }
    od
}

init {
    atomic {
        server[0].isCurrent = true;
        if :: isOlder = true; settlesAt = SETTLING :: skip fi;
        run First();
        run Second();
        run Faults()
    }
}
