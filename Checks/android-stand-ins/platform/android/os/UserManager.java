package android.os;

/** {@code ai.synheart.standins.StandInDevice} has one. */
public class UserManager {
    protected UserManager() {}

    /** Whether the user entered the credential once since the device booted. API 24. */
    public boolean isUserUnlocked() { return true; }
}
