#include "messages.h"

#include <string.h>

const char *const MESSAGES_LANGUAGES[LANGUAGE_COUNT + 1] = {
        [LANGUAGE_EN] = "en", [LANGUAGE_ES] = "es", [LANGUAGE_PT] = "pt",
        [LANGUAGE_DE] = "de", [LANGUAGE_FR] = "fr", NULL,
};

static const char *const TEXTS[MESSAGE_COUNT][LANGUAGE_COUNT] = {
        [MESSAGE_RUNG_INTERPRETER] = {"interpreter and import", "intérprete e importación",
                                      "interpretador e importação", "Interpreter und Import", "interpréteur et import"},
        [MESSAGE_RUNG_BACKEND] = {"backend and device", "backend y dispositivo", "backend e dispositivo",
                                  "Backend und Gerät", "backend et périphérique"},
        [MESSAGE_RUNG_COMPUTATION] = {"small computation", "pequeño cálculo", "pequeno cálculo", "kleine Berechnung",
                                      "petit calcul"},
        [MESSAGE_OK] = {"ok", "ok", "ok", "ok", "ok"},
        [MESSAGE_FAILED] = {"FAILED", "FALLO", "FALHA", "FEHLER", "ÉCHEC"},
        [MESSAGE_NOT_CHECKED] = {"not checked", "sin comprobar", "não verificado", "nicht geprüft", "non vérifié"},
        [MESSAGE_NOT_REACHED] = {"not reached", "no alcanzado", "não alcançado", "nicht erreicht", "non atteint"},
        [MESSAGE_PYTORCH] = {"PyTorch", "PyTorch", "PyTorch", "PyTorch", "PyTorch"},
        [MESSAGE_STAGE] = {"stage", "etapa", "etapa", "Phase", "étape"},
        [MESSAGE_NEXT] = {"next", "siguiente paso", "próximo passo", "nächster Schritt", "à faire"},
        [MESSAGE_HINT] = {"hint", "pista", "dica", "Hinweis", "piste"},
        [MESSAGE_STARTING] = {"starting the workload", "iniciando el programa", "iniciando o programa",
                              "das Programm wird gestartet", "lancement du programme"},
        [MESSAGE_NOT_STARTED] = {"the workload was not started", "el programa no se ha iniciado",
                                 "o programa não foi iniciado", "das Programm wurde nicht gestartet",
                                 "le programme n'a pas été lancé"},
        [MESSAGE_REPORT_SAVED] = {"report saved as", "informe guardado en", "relatório salvo em",
                                  "Bericht gespeichert unter", "rapport enregistré sous"},
        [MESSAGE_SANDBOX_OFF] =
                {"WARNING: the sandbox is off: code of the image ran unconfined",
                 "ADVERTENCIA: el sandbox está desactivado: el código de la imagen se ejecutó sin restricciones",
                 "ATENÇÃO: o sandbox está desativado: o código da imagem foi executado sem restrições",
                 "WARNUNG: Die Sandbox ist abgeschaltet: Code des Images lief uneingeschränkt",
                 "ATTENTION : le bac à sable est désactivé : le code de l'image a tourné sans restriction"},
        [MESSAGE_WORKER_PRINTED] = {"printed by the worker", "salida del proceso de comprobación",
                                    "saída do processo de verificação", "Ausgabe des Prüfprozesses",
                                    "sortie du processus de vérification"},
};

static const char *const NEXT_ACTIONS[CODE_COUNT][LANGUAGE_COUNT] = {
        [CODE_GPU_CHECK_PASSED] = {"go on to a small input of the application",
                                   "continúe con una entrada pequeña de la aplicación",
                                   "prossiga com uma entrada pequena da aplicação",
                                   "mit einer kleinen Eingabe für die Anwendung fortfahren",
                                   "passer à une petite entrée de l'application"},
        [CODE_CPU_CHECK_PASSED] = {"conclude nothing about CUDA or ROCm", "no saque conclusiones sobre CUDA ni ROCm",
                                   "não tire conclusões sobre CUDA ou ROCm",
                                   "daraus keine Schlüsse auf CUDA oder ROCm ziehen",
                                   "n'en tirer aucune conclusion sur CUDA ou ROCm"},
        [CODE_USAGE_ERROR] = {"correct the command line or the variable that the message names",
                              "corrija la línea de comandos o la variable que indica el mensaje",
                              "corrija a linha de comando ou a variável que a mensagem indica",
                              "die Befehlszeile oder die in der Meldung genannte Variable korrigieren",
                              "corriger la ligne de commande ou la variable indiquée par le message"},
        [CODE_TORCH_MISSING] = {"check interpreter, package and its dependencies",
                                "revise el intérprete, el paquete y sus dependencias",
                                "verifique o interpretador, o pacote e suas dependências",
                                "Interpreter, Paket und dessen Abhängigkeiten prüfen",
                                "vérifier l'interpréteur, le paquet et ses dépendances"},
        [CODE_TORCH_IMPORT_FAILED] = {"check interpreter, package and its dependencies",
                                      "revise el intérprete, el paquete y sus dependencias",
                                      "verifique o interpretador, o pacote e suas dependências",
                                      "Interpreter, Paket und dessen Abhängigkeiten prüfen",
                                      "vérifier l'interpréteur, le paquet et ses dépendances"},
        [CODE_GPU_BACKEND_ABSENT] =
                {"install the package, or start the container, for this environment",
                 "instale el paquete o inicie el contenedor adecuado para este entorno",
                 "instale o pacote ou inicie o contêiner adequado a este ambiente",
                 "das für diese Umgebung passende Paket installieren oder den passenden Container starten",
                 "installer le paquet ou démarrer le conteneur prévu pour cet environnement"},
        [CODE_GPU_UNAVAILABLE] = {"check exposure of the cards and the driver",
                                  "compruebe que las tarjetas estén expuestas y revise el controlador",
                                  "verifique a exposição das placas e o driver",
                                  "Durchreichung der Karten und Treiber prüfen",
                                  "vérifier l'exposition des cartes et le pilote"},
        [CODE_DEVICE_INDEX_INVALID] = {"check the index and the masks", "revise el índice y las máscaras",
                                       "verifique o índice e as máscaras", "Index und Masken prüfen",
                                       "vérifier l'index et les masques"},
        [CODE_CHECK_FAILED] = {"read `stage` before starting the full model",
                               "lea `stage` antes de iniciar el modelo completo",
                               "leia `stage` antes de iniciar o modelo completo",
                               "`stage` lesen, bevor das vollständige Modell gestartet wird",
                               "lire `stage` avant de lancer le modèle complet"},
        [CODE_OUT_OF_MEMORY] = {"read `stage` before starting the full model",
                                "lea `stage` antes de iniciar el modelo completo",
                                "leia `stage` antes de iniciar o modelo completo",
                                "`stage` lesen, bevor das vollständige Modell gestartet wird",
                                "lire `stage` avant de lancer le modèle complet"},
        [CODE_RUNTIME_ERROR] = {"read `stage` before starting the full model",
                                "lea `stage` antes de iniciar el modelo completo",
                                "leia `stage` antes de iniciar o modelo completo",
                                "`stage` lesen, bevor das vollständige Modell gestartet wird",
                                "lire `stage` avant de lancer le modèle complet"},
        [CODE_TIMEOUT] = {"treat as a failure; examine the environment", "trátelo como un fallo; examine el entorno",
                          "trate como falha; examine o ambiente", "als Fehlschlag werten; Umgebung untersuchen",
                          "traiter comme un échec ; examiner l'environnement"},
        [CODE_WORKER_FAILED] = {"treat as a failure; examine the environment",
                                "trátelo como un fallo; examine el entorno", "trate como falha; examine o ambiente",
                                "als Fehlschlag werten; Umgebung untersuchen",
                                "traiter comme un échec ; examiner l'environnement"},
        [CODE_OUTPUT_WRITE_FAILED] = {"use a new, accessible file name", "use un nombre de archivo nuevo y accesible",
                                      "use um nome de arquivo novo e acessível",
                                      "einen neuen, zugänglichen Dateinamen verwenden",
                                      "utiliser un nom de fichier nouveau et accessible"},
        [CODE_INTERPRETER_FAILED] = {"name the right interpreter", "indique el intérprete correcto",
                                     "indique o interpretador correto", "den richtigen Interpreter angeben",
                                     "indiquer le bon interpréteur"},
        [CODE_SANDBOX_FAILED] = {"use --sandbox best-effort, or allow seccomp",
                                 "use --sandbox best-effort o permita seccomp",
                                 "use --sandbox best-effort ou permita seccomp",
                                 "--sandbox best-effort verwenden oder seccomp erlauben",
                                 "utiliser --sandbox best-effort ou autoriser seccomp"},
        [CODE_WORKLOAD_NOT_EXECUTABLE] = {"mend the command", "corrija el comando", "corrija o comando",
                                          "den Befehl korrigieren", "corriger la commande"},
        [CODE_WORKLOAD_NOT_FOUND] = {"mend the command", "corrija el comando", "corrija o comando",
                                     "den Befehl korrigieren", "corriger la commande"},
        [CODE_INTERRUPTED] = {"the check was stopped by a signal: run it again",
                              "una señal detuvo la comprobación: repítala",
                              "um sinal interrompeu a verificação: repita-a",
                              "die Prüfung wurde durch ein Signal abgebrochen: erneut ausführen",
                              "la vérification a été interrompue par un signal : la relancer"},
};

#define HINT_ID(name, id) [name] = id,
static const char *const HINT_IDS[HINT_COUNT] = {MESSAGES_HINTS(HINT_ID)};
#undef HINT_ID

static const char *const HINT_TEXTS[HINT_COUNT][LANGUAGE_COUNT] = {
#include "hints.inc"
};

/* The value of NAME in envp when it is there and not empty, else NULL. */
static const char *lookup(char *const envp[], const char *name)
{
	size_t length = strlen(name);

	for (; envp && *envp; envp++)
		if (strncmp(*envp, name, length) == 0 && (*envp)[length] == '=')
			return (*envp)[length + 1] ? *envp + length + 1 : NULL;
	return NULL;
}

enum language messages_language_from_locale(char *const envp[])
{
	static const char *const VARIABLES[] = {"LC_ALL", "LC_MESSAGES", "LANG"};

	for (size_t i = 0; i < sizeof VARIABLES / sizeof *VARIABLES; i++) {
		const char *locale = lookup(envp, VARIABLES[i]);
		if (!locale)
			continue;
		for (int language = 0; language < LANGUAGE_COUNT; language++)
			if (strncmp(locale, MESSAGES_LANGUAGES[language], 2) == 0 && strchr("_.@", locale[2]))
				return (enum language)language;
		return LANGUAGE_EN;
	}
	return LANGUAGE_EN;
}

const char *messages_text(enum message message, enum language language)
{
	return TEXTS[message][language];
}

const char *messages_next_action(enum code code, enum language language)
{
	return NEXT_ACTIONS[code][language];
}

const char *messages_hint_id(enum hint hint)
{
	return HINT_IDS[hint];
}

const char *messages_hint_text(enum hint hint, enum language language)
{
	return HINT_TEXTS[hint][language];
}

bool messages_hint_from_id(const char *id, size_t length, enum hint *out)
{
	for (int i = 0; i < HINT_COUNT; i++) {
		if (strlen(HINT_IDS[i]) == length && memcmp(HINT_IDS[i], id, length) == 0) {
			*out = (enum hint)i;
			return true;
		}
	}
	return false;
}
