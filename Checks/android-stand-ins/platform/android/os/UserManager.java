package android.os;

/** {@code ai.synheart.standins.StandInDevice} implements this class. */
public class UserManager {
    protected UserManager() {}

    /** Whether the user has entered the credential since the device booted. Since API 24. */
    public boolean isUserUnlocked() { return true; }
}
