package ai.synheart.auth

import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.async
import kotlinx.coroutines.delay
import kotlinx.coroutines.withTimeout
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNotEquals
import org.junit.Test

/** Requests that are still running when the identity is reset and registered again. */
class EarlierIdentityTest {
    /** The next request to a path, held until it is [released]: before it is sent, or before its answer arrives. */
    private class Held(world: World, isAnswered: Boolean, path: String = World.TOKEN) {
        val arrived = CompletableDeferred<Unit>()
        val released = CompletableDeferred<Unit>()

        init {
            world.at(path) { send ->
                val answer = if (isAnswered) send() else null
                arrived.complete(Unit)
                released.await()
                answer ?: send()
            }
        }
    }

    private suspend fun World.registerAnew() {
        client.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED)
        register()
    }

    @Test
    fun `a new identity does not get the refusal of the identity before it`() = World.run {
        register()
        withTimeout(20.seconds) {
            val old = Held(this@run, isAnswered = false)
            val first = async { runCatching { client.deviceToken(appId) } }
            old.arrived.await()
            registerAnew()
            val new = Held(this@run, isAnswered = true)
            val second = async { client.deviceToken(appId) }
            new.arrived.await()
            old.released.complete(Unit)
            // The refusal must not make the app reset the new identity.
            val refused = first.await().exceptionOrNull() as SynheartAuthException.NetworkError
            assertEquals(Recovery.RETRY, refused.recovery)
            // The end of the old request does not end the new one, which a third caller joins.
            val third = async { client.deviceToken(appId) }
            delay(100)
            new.released.complete(Unit)
            assertEquals(second.await().token, third.await().token)
        }
        assertEquals(2, count(World.TOKEN))
    }

    @Test
    fun `a late refusal of the auth service does not end the new identity`() = World.run {
        register()
        withTimeout(20.seconds) {
            val old = Held(this@run, isAnswered = false, World.STATUS)
            val first = async { send() }
            old.arrived.await()
            registerAnew()
            old.released.complete(Unit)
            assertEquals(401, first.await().status)
        }
        expectWorking()
    }

    @Test
    fun `a token of the identity before it is neither returned nor cached for a new one`() = World.run {
        register()
        withTimeout(20.seconds) {
            val old = Held(this@run, isAnswered = true)
            val first = async { client.deviceToken(appId).token }
            old.arrived.await()
            registerAnew()
            val second = client.deviceToken(appId).token
            old.released.complete(Unit)
            assertNotEquals(first.await(), second)
            assertEquals(second, client.deviceToken(appId).token)
        }
        assertEquals(2, count(World.TOKEN))
    }
}
