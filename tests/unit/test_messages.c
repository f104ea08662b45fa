/* The messages in every language: each there, well-formed, translated, and with the names that must not be. */
#include "messages.h"
#include "tap.h"

#include <ctype.h>
#include <stdint.h>

enum { HINT_BYTES_MAX = 180 /* "about 160": a hint is one line */, NAMES_MAX = 128 };

/* A table of texts: its rows, and how a row is named in a diagnostic. */
struct table {
	const char *name;
	int rows;
	const char *(*text)(int row, enum language language);
	const char *(*row_name)(int row);
};

static const char *text_of_message(int row, enum language language)
{
	return messages_text((enum message)row, language);
}

static const char *text_of_code(int row, enum language language)
{
	return messages_next_action((enum code)row, language);
}

static const char *text_of_hint(int row, enum language language)
{
	return messages_hint_text((enum hint)row, language);
}

static const char *english_of_message(int row)
{
	const char *text = messages_text((enum message)row, LANGUAGE_EN);

	return text ? text : "(null)";
}

static const char *name_of_code(int row)
{
	return code_name((enum code)row);
}

static const char *id_of_hint(int row)
{
	return messages_hint_id((enum hint)row);
}

static const struct table TABLES[] = {
        {"message", MESSAGE_COUNT, text_of_message, english_of_message},
        {"next action", CODE_COUNT, text_of_code, name_of_code},
        {"hint", HINT_COUNT, text_of_hint, id_of_hint},
};

/* The code point at *text, which moves past it; UINT32_MAX when the bytes are not well-formed UTF-8 (RFC 3629): cut
 * short, overlong, a surrogate, or beyond U+10FFFF. A NUL ends a sequence as any wrong byte does. */
static uint32_t decode(const unsigned char **text)
{
	static const uint32_t SMALLEST[] = {0, 0x80, 0x800, 0x10000};
	unsigned first = *(*text)++;
	int more = first < 0x80 ? 0 : first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
	uint32_t point = more == 0 ? first : first & (0x3fu >> more);

	if ((first >= 0x80 && first < 0xc2) || first > 0xf4)
		return UINT32_MAX;
	for (int i = 0; i < more; i++) {
		if ((**text & 0xc0) != 0x80)
			return UINT32_MAX;
		point = point << 6 | (*(*text)++ & 0x3fu);
	}
	if (point < SMALLEST[more] || (point >= 0xd800 && point <= 0xdfff) || point > 0x10ffff)
		return UINT32_MAX;
	return point;
}

/* What is wrong with the characters of a text; NULL when nothing is. */
static const char *bad_characters(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	while (*at) {
		uint32_t point = decode(&at);
		if (point == UINT32_MAX)
			return "is not UTF-8";
		if (point < 0x20 || (point >= 0x7f && point < 0xa0))
			return "has a control character";
	}
	return NULL;
}

static bool ends_sentence(const char *text, size_t length)
{
	static const char *const PERIODS[] = {".", "!", "?", ":", ";", ",", "\u2026", "\u3002"};

	for (size_t i = 0; i < sizeof PERIODS / sizeof *PERIODS; i++) {
		size_t size = strlen(PERIODS[i]);
		if (length >= size && memcmp(text + length - size, PERIODS[i], size) == 0)
			return true;
	}
	return false;
}

/* The rule of report.schema.json for prose: a device node below /dev may be named, no other path. */
static bool has_path(const char *text)
{
	for (const char *at = strchr(text, '/'); at; at = strchr(at + 1, '/')) {
		bool starts = at == text || strchr(" \"'`([{<=:,;.~", at[-1]);
		bool is_device = strncmp(at, "/dev/", 5) == 0 && (at == text || !strchr(".~", at[-1]));
		if (starts && !is_device)
			return true;
	}
	return false;
}

static const char *bad_text(const char *text)
{
	if (!text)
		return "is missing";
	size_t length = strlen(text);
	if (length == 0)
		return "is empty";
	const char *bad = bad_characters(text);
	if (bad)
		return bad;
	if (text[0] == ' ' || text[length - 1] == ' ' || strstr(text, "  "))
		return "has a blank too many";
	if (strstr(text, "\u00a0") || strstr(text, "\u202f"))
		return "has a no-break space, which some terminals and searches do not take for a blank";
	if (ends_sentence(text, length))
		return "ends in punctuation";
	return has_path(text) ? "names a path" : NULL;
}

/* The words that are the same in English and in a translation, whatever the language. */
static bool may_be_equal(const char *english)
{
	static const char *const WORDS[] = {"PyTorch", "ok"};

	for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
		if (strcmp(english, WORDS[i]) == 0)
			return true;
	return false;
}

static bool is_name_byte(char byte)
{
	return isalnum((unsigned char)byte) || (byte && strchr("-_./`", byte));
}

/* Whether a word of an English text is the name of an option, variable, file, library or key, or an abbreviation. */
static bool is_untranslatable(const char *word, size_t length)
{
	bool is_upper = length > 1;

	for (size_t i = 0; i < length; i++) {
		is_upper = is_upper && isupper((unsigned char)word[i]);
		if (strchr("_./`", word[i]) || isdigit((unsigned char)word[i]) || (i == 0 && word[i] == '-') ||
		    (i > 0 && isupper((unsigned char)word[i]) && islower((unsigned char)word[i - 1])))
			return true;
	}
	return is_upper;
}

static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		if ((at == text || !is_name_byte(at[-1])) && (at[length] == '-' || !is_name_byte(at[length])))
			return true;
	return false;
}

/* The first name of the English text that the translation lacks; "" when it has them all. `WARNING` and `FAILED` are
 * words in capitals, no names. */
static void lost_name(const char *english, const char *text, char lost[NAMES_MAX])
{
	for (const char *at = english; *at;) {
		size_t length = 0;
		while (is_name_byte(at[length]))
			length++;
		if (length > 0 && length < NAMES_MAX && is_untranslatable(at, length)) {
			memcpy(lost, at, length);
			lost[length] = '\0';
			if (strcmp(lost, "WARNING") != 0 && strcmp(lost, "FAILED") != 0 && !has_word(text, lost))
				return;
		}
		at += length ? length : 1;
	}
	lost[0] = '\0';
}

static void test_texts(const struct table *table, enum language language)
{
	const char *word = MESSAGES_LANGUAGES[language];
	int bad = 0, same = 0, lost_names = 0;

	for (int row = 0; row < table->rows; row++) {
		const char *text = table->text(row, language), *english = table->text(row, LANGUAGE_EN);
		const char *problem = bad_text(text);
		char lost[NAMES_MAX];

		if (problem) {
			bad++;
			printf("# %s, %s: %s\n", word, table->row_name(row), problem);
		}
		if (!text || !english || language == LANGUAGE_EN)
			continue;
		if (strcmp(text, english) == 0 && !may_be_equal(english)) {
			same++;
			printf("# %s, %s: not translated\n", word, table->row_name(row));
		}
		lost_name(english, text, lost);
		if (lost[0]) {
			lost_names++;
			printf("# %s, %s: '%s' of the English text is lost\n", word, table->row_name(row), lost);
		}
	}
	ok(table->rows > 0 && bad == 0, "%s: every %s is there and well-formed", word, table->name);
	if (language == LANGUAGE_EN)
		return;
	ok(same == 0, "%s: every %s is translated", word, table->name);
	ok(lost_names == 0, "%s: every %s keeps the names of the English one", word, table->name);
}

static void test_hint_rows(void)
{
	int incomplete = 0, too_long = 0;

	for (int hint = 0; hint < HINT_COUNT; hint++) {
		int there = 0;
		for (int language = 0; language < LANGUAGE_COUNT; language++) {
			const char *text = messages_hint_text((enum hint)hint, (enum language)language);
			there += text && *text;
			if (text && strlen(text) > HINT_BYTES_MAX) {
				too_long++;
				printf("# %s, %s: %zu bytes\n", MESSAGES_LANGUAGES[language],
				       messages_hint_id((enum hint)hint), strlen(text));
			}
		}
		if (there != LANGUAGE_COUNT) {
			incomplete++;
			printf("# %s: %d languages\n", messages_hint_id((enum hint)hint), there);
		}
	}
	is_int(incomplete, 0, "every hint has all five languages");
	is_int(too_long, 0, "every hint is short");
}

/* Two ways to say the same would be a hint too many, or a row pasted and left. */
static void test_hints_differ(void)
{
	int same = 0;

	for (int language = 0; language < LANGUAGE_COUNT; language++) {
		for (int i = 0; i < HINT_COUNT * HINT_COUNT; i++) {
			enum hint a = (enum hint)(i / HINT_COUNT), b = (enum hint)(i % HINT_COUNT);
			const char *one = messages_hint_text(a, (enum language)language);
			const char *other = messages_hint_text(b, (enum language)language);
			if (a >= b || !one || !other || strcmp(one, other) != 0)
				continue;
			same++;
			printf("# %s: %s and %s\n", MESSAGES_LANGUAGES[language], messages_hint_id(a),
			       messages_hint_id(b));
		}
	}
	is_int(same, 0, "no two hints have the same text");
}

/* Lower-case words and digits, joined by single hyphens. */
static bool is_kebab_case(const char *id)
{
	if (!islower((unsigned char)id[0]))
		return false;
	for (const char *at = id; *at; at++)
		if (!(islower((unsigned char)*at) || isdigit((unsigned char)*at) ||
		      (*at == '-' && isalnum((unsigned char)at[1]))))
			return false;
	return true;
}

static void test_ids(void)
{
	int bad_case = 0, unsorted = 0, lost = 0, doubled = 0;

	for (int hint = 0; hint < HINT_COUNT; hint++) {
		const char *id = messages_hint_id((enum hint)hint);
		enum hint found = HINT_COUNT;
		bad_case += !is_kebab_case(id);
		unsorted += hint > 0 && strcmp(messages_hint_id((enum hint)(hint - 1)), id) >= 0;
		lost += !messages_hint_from_id(id, strlen(id), &found) || (int)found != hint;
		for (int other = 0; other < hint; other++)
			doubled += strcmp(messages_hint_id((enum hint)other), id) == 0;
	}
	is_int(bad_case, 0, "every hint id is kebab-case");
	is_int(unsorted, 0, "hint ids are sorted");
	is_int(doubled, 0, "hint ids are unique");
	is_int(lost, 0, "every hint is found by its id");
}

static void test_foreign_ids(void)
{
	static const char *const FOREIGN[] = {"", "-", "wsl ", "WSL", "wsl\n", "ws", "wsl2", "gvisor-", "no such hint"};
	enum hint found = HINT_COUNT;
	int taken = 0;

	for (size_t i = 0; i < sizeof FOREIGN / sizeof *FOREIGN; i++)
		taken += messages_hint_from_id(FOREIGN[i], strlen(FOREIGN[i]), &found);
	is_int(taken, 0, "what is no id is not found");
	ok(!messages_hint_from_id("wsl", 2, &found) && !messages_hint_from_id("wsl", 4, &found) && found == HINT_COUNT,
	   "the length counts, and *out is left alone");
	ok(messages_hint_from_id("wsl: more", 3, &found) && found == HINT_WSL, "an id need not be terminated");
}

static void test_languages(void)
{
	static const struct {
		char *envp[4];
		enum language want;
		const char *name;
	} CASES[] = {
	        {{NULL}, LANGUAGE_EN, "no variable"},
	        {{"LANG=es_ES.UTF-8", NULL}, LANGUAGE_ES, "LANG"},
	        {{"LANG=pt_BR", NULL}, LANGUAGE_PT, "without a codeset"},
	        {{"LANG=de", NULL}, LANGUAGE_DE, "without a territory"},
	        {{"LANG=fr@euro", NULL}, LANGUAGE_FR, "with a modifier"},
	        {{"LANG=es_ES", "LC_MESSAGES=de_DE", NULL}, LANGUAGE_DE, "LC_MESSAGES before LANG"},
	        {{"LANG=es_ES", "LC_MESSAGES=de_DE", "LC_ALL=fr_FR", NULL}, LANGUAGE_FR, "LC_ALL before LC_MESSAGES"},
	        {{"LC_ALL=", "LC_MESSAGES=", "LANG=pt_PT", NULL}, LANGUAGE_PT, "an empty variable counts as unset"},
	        {{"LC_ALL=C", "LANG=de_DE", NULL}, LANGUAGE_EN, "LC_ALL=C is English, whatever LANG says"},
	        {{"LANG=C.UTF-8", NULL}, LANGUAGE_EN, "C.UTF-8"},
	        {{"LANG=ja_JP.UTF-8", NULL}, LANGUAGE_EN, "a language that is not here"},
	        {{"LANG=fry_NL", NULL}, LANGUAGE_EN, "a language that begins like one of ours"},
	        {{"LANG=d", NULL}, LANGUAGE_EN, "a single letter"},
	        {{"LANGUAGE=de", "XLANG=de_DE", NULL}, LANGUAGE_EN, "other variables"},
	};

	for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
		is_string(MESSAGES_LANGUAGES[messages_language_from_locale(CASES[i].envp)],
		          MESSAGES_LANGUAGES[CASES[i].want], CASES[i].name);
	is_string(MESSAGES_LANGUAGES[messages_language_from_locale(NULL)], "en", "no environment at all");
}

/* The checks above must see what they are for. */
static void test_own_checks(void)
{
	static const char *const BAD[] = {
	        "",
	        "\xc3",
	        "\xc0\xaf",
	        "\xed\xa0\x80",
	        "\xf4\x90\x80\x80",
	        "\x80",
	        "a\xffz",
	        "\xe2\x82",
	        "a\tb",
	        "a\x7f",
	        "\xc2\x85",
	        " a",
	        "a ",
	        "a  b",
	        "a.",
	        "see /etc/passwd",
	        "see ../x",
	        "in (~/x)",
	        "a;",
	        "a\u00a0: b",
	        "a\n",
	        "\x1b[31ma\x1b[0m",
	        "/usr/lib/wsl",
	        "a:/b",
	};
	static const char *const GOOD[] = {"a", "é", "/dev/dxg", "(/dev/nvidia-uvm)", "CUDA/ROCm", "\u20ac \U0001f600"};
	int missed = 0, wronged = 0;
	char lost[NAMES_MAX];

	for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
		missed += !bad_text(BAD[i]);
	for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++)
		wronged += bad_text(GOOD[i]) != NULL;
	ok(missed == 0 && bad_text(NULL), "(control) bad texts are seen");
	is_int(wronged, 0, "(control) good texts are not complained about");
	lost_name("use --python, or LD_LIBRARY_PATH", "utiliser --pythons ou LD_LIBRARY_PATH", lost);
	is_string(lost, "--python", "(control) a changed name is seen");
	lost_name("see `stage`: GPU of libcuda.so.1", "voir `stage` : GPU-Treiber de libcuda.so.1", lost);
	is_string(lost, "", "(control) kept names are seen");
}

int main(void)
{
	test_own_checks();
	for (size_t i = 0; i < sizeof TABLES / sizeof *TABLES; i++)
		for (int language = 0; language < LANGUAGE_COUNT; language++)
			test_texts(&TABLES[i], (enum language)language);
	test_hint_rows();
	test_hints_differ();
	test_ids();
	test_foreign_ids();
	test_languages();
	return done();
}
