package ai.synheart.auth.api

import java.io.File
import kotlin.jvm.internal.Reflection
import kotlin.reflect.KCallable
import kotlin.reflect.KClass
import kotlin.reflect.KFunction
import kotlin.reflect.KMutableProperty
import kotlin.reflect.KParameter
import kotlin.reflect.KProperty
import kotlin.reflect.KType
import kotlin.reflect.KVisibility
import kotlin.reflect.full.declaredMembers
import kotlin.reflect.full.isSubclassOf

/** Prints the public and protected declarations of the classes in a folder, sorted; with `--classes`, only the classes' names. */
object ApiDump {
    @JvmStatic
    fun main(arguments: Array<String>) {
        val folder = File(arguments[0])
        val namesAlone = arguments.getOrNull(1) == "--classes"
        val names = folder.walk().filter { it.extension == "class" }
            .map { it.relativeTo(folder).path.removeSuffix(".class").replace('/', '.') }.sorted().toList()
        for (name in names) {
            val type = Class.forName(name, false, javaClass.classLoader)
            val lines = if (isFacade(type)) topLevel(type) else declarations(type)
            for (line in if (!namesAlone) lines else if (lines.isEmpty()) emptyList() else listOf(name)) println(line)
        }
    }

    private fun kind(type: Class<*>): Int? = type.getAnnotation(Metadata::class.java)?.kind

    /** Whether the compiler made the class for the top-level declarations of a file. */
    private fun isFacade(type: Class<*>) = kind(type) == 2

    // An extension property has no field, so the class's own members do not show it.
    private fun topLevel(type: Class<*>): List<String> =
        Reflection.getOrCreateKotlinPackage(type).members.filter { it.visibility == KVisibility.PUBLIC }
            .map { "${type.`package`.name}: ${text(it)}" }.distinct().sorted()

    private fun declarations(type: Class<*>): List<String> {
        if (kind(type) != 1 || type.isAnonymousClass || type.isLocalClass) return emptyList()
        val kotlin = type.kotlin
        if (generateSequence(type) { it.declaringClass }.any { it.kotlin.visibility != KVisibility.PUBLIC }) return emptyList()
        val parents = kotlin.supertypes.filter { it.classifier != Any::class }.joinToString(", ").let { if (it.isEmpty()) "" else " : $it" }
        val constructors = kotlin.constructors.map { it as KCallable<*> }
        val members = (constructors + kotlin.declaredMembers)
            .filter { it.visibility == KVisibility.PUBLIC || it.visibility == KVisibility.PROTECTED }
            .filter { !isGenerated(kotlin, it) }.map { "    ${text(it)}" }.sorted()
        val entries = if (type.isEnum) listOf("    entries: " + type.enumConstants.joinToString { (it as Enum<*>).name }) else emptyList()
        return listOf("${header(kotlin)}$parents") + entries + members
    }

    private fun header(type: KClass<*>): String = listOfNotNull(
        "public", if (type.isSealed) "sealed" else if (type.isAbstract) "abstract" else if (type.isOpen) "open" else null,
        if (type.isData) "data" else null, if (type.isFun) "fun" else null, if (type.isCompanion) "companion" else null,
        when {
            type.objectInstance != null || type.isCompanion -> "object"
            type.java.isInterface -> "interface"
            type.isSubclassOf(Enum::class) -> "enum class"
            else -> "class"
        },
        type.qualifiedName,
    ).joinToString(" ")

    private fun isGenerated(type: KClass<*>, member: KCallable<*>): Boolean =
        type.isData && (member.name.startsWith("component") || member.name == "copy") || type.java.isEnum && member.name in setOf("values", "valueOf", "entries")

    private fun text(callable: KCallable<*>): String {
        val visibility = callable.visibility.toString().lowercase()
        return when (callable) {
            is KProperty<*> -> "$visibility ${if (callable is KMutableProperty<*>) "var" else "val"} ${receiver(callable)}${callable.name}: ${text(callable.returnType)}"
            is KFunction<*> -> {
                val words = listOfNotNull(visibility, if (callable.isSuspend) "suspend" else null, if (callable.isAbstract) "abstract" else null)
                val parameters = callable.parameters.filter { it.kind == KParameter.Kind.VALUE }
                    .joinToString { "${it.name}: ${text(it.type)}${if (it.isOptional) " = …" else ""}" }
                val name = if (callable.name == "<init>") "constructor" else "fun ${receiver(callable)}${callable.name}"
                "${words.joinToString(" ")} $name($parameters)" + if (callable.name == "<init>") "" else ": ${text(callable.returnType)}"
            }
            else -> "$visibility ${callable.name}"
        }
    }

    private fun receiver(callable: KCallable<*>): String =
        callable.parameters.firstOrNull { it.kind == KParameter.Kind.EXTENSION_RECEIVER }?.let { "${text(it.type)}." } ?: ""

    private fun text(type: KType): String = type.toString().replace("kotlin.collections.", "").replace("kotlin.", "")
}
