package ai.synheart.auth.identity

import ai.synheart.auth.IdentityState
import ai.synheart.auth.StateChange
import java.util.concurrent.ConcurrentHashMap
import kotlinx.coroutines.channels.BufferOverflow
import kotlinx.coroutines.flow.MutableSharedFlow
import kotlinx.coroutines.flow.MutableStateFlow

/** Notifies the listeners of changes of the persisted state. */
internal class StateChanges {
    /** The state changes after a listener subscribes. A listener that falls more than 64 changes behind misses the oldest ones. */
    val changes = MutableSharedFlow<StateChange>(extraBufferCapacity = 64, onBufferOverflow = BufferOverflow.DROP_OLDEST)

    private val states = ConcurrentHashMap<String, MutableStateFlow<IdentityState>>()

    /** The state of an app, as last read or written here. */
    fun flow(appId: String): MutableStateFlow<IdentityState> = states.getOrPut(appId) { MutableStateFlow(IdentityState.UNREGISTERED) }

    fun send(appId: String, from: IdentityState, to: IdentityState) {
        noteState(appId, to)
        changes.tryEmit(StateChange(appId, from, to))
    }

    fun noteState(appId: String, state: IdentityState) {
        states[appId]?.value = state
    }
}
