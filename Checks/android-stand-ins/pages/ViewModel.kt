// What the page's sample uses of androidx.lifecycle.
package androidx.lifecycle

import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.MainScope

abstract class ViewModel

val ViewModel.viewModelScope: CoroutineScope get() = MainScope()
