package ai.synheart.standins;

import java.time.Instant;

/** The clock of Google and of the Keystore's attestation: the system's clock plus an offset that tests set. */
public final class StandInClock {
    /** The time by which this clock is ahead of the system's. */
    public static volatile long offsetMillis;

    private StandInClock() {}

    static long millis() { return System.currentTimeMillis() + offsetMillis; }

    static Instant now() { return Instant.ofEpochMilli(millis()); }
}
