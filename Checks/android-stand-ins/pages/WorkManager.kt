// The parts of androidx.work that the samples in Clients/android/docs/background.md use.
package androidx.work

import android.content.Context
import java.util.concurrent.TimeUnit

public class WorkerParameters

public abstract class ListenableWorker {
    public abstract class Result {
        public companion object {
            @JvmStatic public fun success(): Result = object : Result() {}

            @JvmStatic public fun retry(): Result = object : Result() {}

            @JvmStatic public fun failure(): Result = object : Result() {}
        }
    }
}

@Suppress("UNUSED_PARAMETER")
public abstract class CoroutineWorker(context: Context, parameters: WorkerParameters) : ListenableWorker() {
    public abstract suspend fun doWork(): Result
}

public enum class NetworkType { CONNECTED }

public class Constraints {
    @Suppress("UNUSED_PARAMETER")
    public class Builder {
        public fun setRequiredNetworkType(type: NetworkType): Builder = this

        public fun build(): Constraints = Constraints()
    }
}

public class PeriodicWorkRequest {
    @Suppress("UNUSED_PARAMETER")
    public class Builder(worker: Class<out ListenableWorker>, interval: Long, unit: TimeUnit) {
        public fun setConstraints(constraints: Constraints): Builder = this

        public fun build(): PeriodicWorkRequest = PeriodicWorkRequest()
    }
}
