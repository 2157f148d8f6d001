/*
 * The keeper of the claims: no request is accepted twice, whichever store PostgreSQL names as the keeper, and whoever changes it.
 *
 * The stores are two Redis servers, which may share an address, and PostgreSQL itself. Two nodes claim while an operator names one
 * store after the other, servers lose their data, and addresses lead to another server. One request with any date is enough, because
 * a replay concerns only that request. ReplayClaims.pml models what happens to one server that stays the keeper.
 *
 * Requests dated ahead are claimed in PostgreSQL too while a Redis is the keeper. So when PostgreSQL replaces a Redis, only the dates a
 * little ahead of its clock are refused. Where it may lack such claims, the whole interval is refused. SecondClaims.pml models losses of
 * Redis.
 *
 * In the code, ClaimHistory.swift and SecondClaim.swift (AuthService) have this rule: LIFE stands for ReplayClaim.life, LEASE for
 * ClaimHistory.lease, NEAR for ClaimHistory.leastWindow, and refusesUpTo for the end of an interval of HistoryLoss.
 *
 * Each -D below takes away one part of the rule and must make the search find a replay: `run` checks that too.
 *
 *   WITHOUT_ID            a store is trusted whenever it is the one that is named
 *   WITHOUT_NEW_ID        a Redis that lacks the id gets the present one
 *   WITHOUT_LEASE         a node uses the id that it read for ever
 *   WITHOUT_MARGIN        a change of the keeper does not wait for the leases that began before it
 *   WITHOUT_SECOND_CLAIM  requests dated ahead are claimed only in Redis
 *   WITHOUT_END           PostgreSQL refuses nothing when it replaces a Redis
 */

#define END    5 /* the clock's last value */
#define LIFE   3 /* how long after its date a request is accepted */
#define AHEAD  1 /* how far ahead a request may be dated */
#define NEAR   0 /* how far ahead of PostgreSQL's clock a request is claimed in Redis alone */
#define LEASE  2 /* how long a node uses an id after it read it */
#define STEPS  3 /* changes in one run */
#define HERE   2 /* PostgreSQL as a store */
#define NONE   3

#ifdef WITHOUT_MARGIN
#define MARGIN 0
#else
#define MARGIN (LEASE - 1) /* the last moment at which a claim is made under the previous id */
#endif

#ifdef WITHOUT_SECOND_CLAIM
#define isAhead(me) (false)
#else
#define isAhead(me) (date > readAt[me] + NEAR)
#endif

typedef Store {
    bool claimed;
    byte id;           /* the history that it belongs to; 0: none */
    byte refusesUpTo;  /* requests dated no later are refused */
}

byte clock;
byte date;             /* of the request; any moment of the clock */
byte accepted;
Store store[3];        /* two Redis servers and PostgreSQL */
byte named = HERE;     /* what PostgreSQL names: HERE, or 0 for the address of Redis */
byte id = 1;
byte ids = 1;
byte address[2];       /* the server at which the address of Redis leads each node */
byte readID[2];        /* of the nodes; 0: none */
byte readNamed[2];
byte readAt[2];        /* PostgreSQL's clock then */
bool isWaiting[2];     /* Redis accepted, PostgreSQL was not asked yet */

#define place(me) (readNamed[me] == HERE -> HERE : address[me])

#ifdef WITHOUT_LEASE
#define mayUse(me) (readID[me] != 0)
#else
#define mayUse(me) (readID[me] != 0 && clock < readAt[me] + LEASE)
#endif

#ifdef WITHOUT_ID
#define carries(s, i) (store[s].id != 0)
#else
#define carries(s, i) (store[s].id == i)
#endif

inline begin(s) {
    store[s].id = readID[me];
    store[s].refusesUpTo = clock + MARGIN + AHEAD
}

/* PostgreSQL replaces a Redis, and has the second claims. This happens in the transaction that names PostgreSQL. */
inline keepHere() {
    store[HERE].id = id;
#ifndef WITHOUT_END
    store[HERE].refusesUpTo = (store[HERE].refusesUpTo > clock + NEAR -> store[HERE].refusesUpTo : clock + NEAR)
#endif
}

proctype Node(byte me) {
    byte s;
    end:
    do
    :: atomic {
        (readID[me] != id || readNamed[me] != named || readAt[me] != clock) ->
        readID[me] = id; readNamed[me] = named; readAt[me] = clock
       }
    /* A store that lacks the id: PostgreSQL sees the id of the change in its own transaction, a Redis needs a new one. */
    :: atomic {
        mayUse(me) && !carries(place(me), readID[me]) ->
        s = place(me);
        if
        :: s == HERE && id == readID[me] -> begin(s)
#ifdef WITHOUT_NEW_ID
        :: s != HERE -> begin(s)
#else
        :: s != HERE && id == readID[me] && ids < 9 ->
            ids++; id = ids; readID[me] = ids; readAt[me] = clock; begin(s)
#endif
        :: else
        fi;
        s = 0
       }
    :: atomic {
        mayUse(me) && !isWaiting[me] && carries(place(me), readID[me]) && !(place(me) == HERE && named != HERE) ->
        s = place(me);
        if
        :: date > store[s].refusesUpTo && !store[s].claimed && date <= clock + AHEAD && clock < date + LIFE ->
            store[s].claimed = true;
            if
            :: s != HERE && isAhead(me) -> isWaiting[me] = true
            :: else -> accepted++; assert(accepted <= 1)
            fi
        :: else
        fi;
        s = 0
       }
    /* The second claim, whenever it arrives. If PostgreSQL was named and did not record the loss yet, it does so first. */
    :: atomic {
        isWaiting[me] -> isWaiting[me] = false;
        if
        :: named == HERE && !carries(HERE, id) -> store[HERE].id = id; store[HERE].refusesUpTo = clock + MARGIN + AHEAD
        :: else
        fi;
        if
        :: date > store[HERE].refusesUpTo && !store[HERE].claimed ->
            store[HERE].claimed = true; accepted++; assert(accepted <= 1)
        :: else
        fi
       }
    od
}

proctype Changes() {
    byte steps;
    end:
    do
    :: atomic { clock < END -> clock++ }
    /* An operator, or a starting node, names a store under a new id. */
    :: atomic {
        steps < STEPS && ids < 9 -> steps++;
        ids++; id = ids;
        if
        :: named != HERE -> named = HERE; if :: keepHere() :: skip fi
        :: named == HERE
        :: named = 0
        fi
       }
    /* A Redis loses everything. */
    :: atomic { steps < STEPS -> steps++; if :: store[0].claimed = false; store[0].id = 0 :: store[1].claimed = false; store[1].id = 0 fi }
    /* The address leads a node to the other server. */
    :: atomic { steps < STEPS -> steps++; if :: address[0] = 1 - address[0] :: address[1] = 1 - address[1] fi }
    od
}

init {
    atomic {
        store[HERE].id = 1;
        select(date : 0 .. END);
        run Node(0);
        run Node(1);
        run Changes()
    }
}
