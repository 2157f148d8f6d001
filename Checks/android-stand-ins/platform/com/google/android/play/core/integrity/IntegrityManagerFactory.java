package com.google.android.play.core.integrity;

import ai.synheart.standins.StandInDevice;
import android.content.Context;
import androidx.annotation.NonNull;

public class IntegrityManagerFactory {
    private IntegrityManagerFactory() {}

    @NonNull
    public static IntegrityManager create(Context context) { return StandInDevice.current().play.classic(context); }

    public static StandardIntegrityManager createStandard(Context context) { return StandInDevice.current().play.standard(context); }
}
