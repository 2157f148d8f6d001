import org.jetbrains.kotlin.gradle.dsl.JvmTarget
import org.jetbrains.kotlin.gradle.dsl.KotlinVersion

plugins {
    alias(libs.plugins.android.library)
    alias(libs.plugins.kotlin.android)
    `maven-publish`
}

android {
    namespace = "ai.synheart.auth"
    compileSdk = 35

    defaultConfig {
        minSdk = 26
        consumerProguardFiles("consumer-rules.pro")
    }

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }

    // Development mode is in src/debug. An app's debug build gets it, and its release build does not.
    publishing {
        multipleVariants {
            allVariants()
            withSourcesJar()
        }
    }
}

kotlin {
    explicitApi()
    compilerOptions {
        allWarningsAsErrors = true
        languageVersion = KotlinVersion.KOTLIN_2_1
        apiVersion = KotlinVersion.KOTLIN_2_1
        jvmTarget = JvmTarget.JVM_1_8
        // Checks for callers in Java, which this API of suspend functions hardly has. They cost 6 KB.
        freeCompilerArgs.addAll("-Xno-param-assertions", "-Xno-call-assertions", "-Xno-receiver-assertions")
    }
}

dependencies {
    // Part of the API: StateFlow.
    api(libs.coroutines.core)
    // An app that uses Play Integrity, or the interceptor for OkHttp, adds the library itself.
    compileOnly(libs.play.integrity)
    compileOnly(libs.okhttp)
}

// The tests run in a JVM against stand-ins for Android: scripts/test. They are no Gradle tests.
android.sourceSets.named("test") { kotlin.setSrcDirs(emptyList<String>()) }

publishing {
    publications {
        register<MavenPublication>("library") {
            groupId = "ai.synheart"
            artifactId = "synheart-auth"
            version = providers.gradleProperty("VERSION_NAME").get()
            afterEvaluate { from(components["default"]) }
            pom {
                name = "Synheart Auth"
                description = "Device identity: the Kotlin client"
                licenses { license { name = "Apache-2.0" } }
            }
        }
    }
}
