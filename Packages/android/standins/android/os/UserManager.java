package android.os;

import java.util.function.BooleanSupplier;

public final class UserManager {
    private final BooleanSupplier isUnlocked;

    public UserManager(BooleanSupplier isUnlocked) { this.isUnlocked = isUnlocked; }

    /** Whether the user entered the credential once since the device booted. API 24. */
    public boolean isUserUnlocked() { return isUnlocked.getAsBoolean(); }
}
