// The parts of androidx.lifecycle that the sample in Clients/android/docs/first-use.md uses.
package androidx.lifecycle

import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.MainScope

abstract class ViewModel

val ViewModel.viewModelScope: CoroutineScope get() = MainScope()
