package ai.synheart.standins;

import java.time.Instant;

/** The clock of Google and of the Keystore's authority: the system's, moved by a test. */
public final class StandInClock {
    /** How far it is ahead of the system's. */
    public static volatile long offsetMillis;

    private StandInClock() {}

    static long millis() { return System.currentTimeMillis() + offsetMillis; }

    static Instant now() { return Instant.ofEpochMilli(millis()); }
}
