package ai.synheart.auth.flutter

import java.io.File
import java.lang.reflect.InvocationTargetException
import java.net.URLClassLoader
import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Test

/** The plugin with the release build of the Kotlin module, as in the release build of an app. */
class ReleaseTest {
    private val classes = URLClassLoader(
        System.getProperty("synheart.release").split(File.pathSeparator).map { File(it).toURI().toURL() }.toTypedArray(),
        ClassLoader.getPlatformClassLoader(),
    )

    private fun configure(developmentMode: Boolean): Any {
        val scheme = classes.loadClass("ai.synheart.auth.SignatureScheme").enumConstants.first()
        val settings = classes.loadClass(Settings::class.java.name).declaredConstructors.single { it.parameterCount == 8 }
            .newInstance("https://auth.example.com", emptySet<String>(), emptySet<String>(), scheme, true, null, "either", developmentMode)
        return classes.loadClass("ai.synheart.auth.flutter.AndroidClientKt").getMethod("configuration", settings.javaClass)
            .invoke(null, settings)
    }

    @Test
    fun `a release build refuses development mode with NOT_CONFIGURED`() {
        val error = assertThrows(InvocationTargetException::class.java) { configure(developmentMode = true) }.targetException
        assertEquals("NOT_CONFIGURED: a release build contains no development mode", error.toString())
    }

    @Test
    fun `a release build accepts a configuration without development mode`() {
        val baseUrl = configure(developmentMode = false).let { it.javaClass.getMethod("getBaseUrl").invoke(it) }
        assertEquals("https://auth.example.com", baseUrl)
    }
}
