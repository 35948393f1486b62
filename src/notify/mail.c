#include "notify/mail.h"

#include "base/base64.h"
#include "base/buf.h"
#include "notify/receiver.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LETTER_MAX_BYTES ((size_t)4 << 20)
#define SUBJECT_MAX      200
#define WORD_BYTES       42 /* of text in one encoded word: 56 of base64, within the 75 allowed */
#define LINE_BYTES       57 /* of the body in one line of 76 */
#define ADDRESS_MAX      254

bool notify_address_is_valid(const char *address)
{
    const char *at = strchr(address, '@');
    size_t len = strlen(address);
    bool is_valid = at != NULL && at != address && at[1] != '\0' && strchr(at + 1, '@') == NULL &&
                    len <= ADDRESS_MAX;
    for (const char *p = address; *p != '\0'; p++) {
        is_valid = is_valid && *p > ' ' && *p < 0x7f && strchr("\"<>(),:;[]\\", *p) == NULL;
    }
    return is_valid;
}

/* The largest length up to `max` that does not cut a UTF-8 character. */
static size_t whole_characters(const char *text, size_t len, size_t max)
{
    size_t n = WEIR_MIN(len, max);
    while (n > 0 && n < len && ((unsigned char)text[n] & 0xc0) == 0x80) {
        n--;
    }
    return n;
}

/* Always as encoded words: a subject holds what people and cameras are called. */
static void put_subject(struct weir_buf *out, const char *text)
{
    char word[WEIR_BASE64_TEXT_BYTES(WORD_BYTES)];
    size_t len = whole_characters(text, strlen(text), SUBJECT_MAX);
    weir_buf_puts(out, "Subject:");
    for (size_t at = 0; at < len;) {
        size_t n = whole_characters(text + at, len - at, WORD_BYTES);
        n = n > 0 ? n : WEIR_MIN(len - at, (size_t)WORD_BYTES);
        weir_buf_printf(out, "%s=?UTF-8?B?%s?=", at == 0 ? " " : "\r\n ",
                        weir_base64_encode(text + at, n, word));
        at += n;
    }
    weir_buf_puts(out, "\r\n");
}

static void put_date(struct weir_buf *out, int64_t now_ms)
{
    /* Not by strftime: names of days and months would follow the locale. */
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm tm;
    time_t seconds = (time_t)(now_ms / 1000);
    if (gmtime_r(&seconds, &tm) != NULL) {
        weir_buf_printf(out, "Date: %.3s, %d %.3s %d %02d:%02d:%02d +0000\r\n",
                        days + (ptrdiff_t)3 * tm.tm_wday, tm.tm_mday,
                        months + (ptrdiff_t)3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
                        tm.tm_sec);
    }
}

static void put_body(struct weir_buf *out, const char *text)
{
    char line[WEIR_BASE64_TEXT_BYTES(LINE_BYTES)];
    size_t len = strlen(text);
    for (size_t at = 0; at < len; at += LINE_BYTES) {
        weir_buf_printf(
            out, "%s\r\n",
            weir_base64_encode(text + at, WEIR_MIN(len - at, (size_t)LINE_BYTES), line));
    }
}

static const char *text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text != NULL ? text : "-";
}

/* What people read. */
static char *tell(const json_t *message, struct weir_arena *arena)
{
    const json_t *alerts = json_object_get(message, "alerts"), *alert;
    struct weir_buf text;
    size_t i;
    weir_buf_init(&text, LETTER_MAX_BYTES / 2);
    json_array_foreach(alerts, i, alert)
    {
        weir_buf_printf(&text,
                        "%s\n\n  severity  %s\n  kind      %s\n  subject   %s\n  state     %s\n"
                        "  raised    %s\n  alert     %s\n\n",
                        text_of(alert, "message"), text_of(alert, "severity"),
                        text_of(alert, "kind"), text_of(alert, "subject"), text_of(alert, "state"),
                        text_of(alert, "raised"), text_of(alert, "id"));
    }
    if (json_array_size(alerts) == 0) {
        weir_buf_puts(&text, "This is a test of a receiver of alerts. Nothing is wrong.\n\n");
    }
    weir_buf_printf(&text, "Rule %s of Weir at %s.\n", text_of(message, "rule"),
                    text_of(message, "server"));
    char *copy = weir_arena_strdup(arena, text.data);
    weir_buf_fini(&text);
    return copy;
}

char *notify_mail_make(const struct notify_mail *mail, struct weir_arena *arena)
{
    struct weir_buf out;
    const json_t *address;
    size_t i;
    weir_buf_init(&out, LETTER_MAX_BYTES);
    weir_buf_printf(&out, "From: %s\r\nTo: ", mail->from);
    json_array_foreach(mail->to, i, address)
    {
        weir_buf_printf(&out, "%s%s", i > 0 ? ",\r\n " : "", json_string_value(address));
    }
    weir_buf_puts(&out, "\r\n");
    put_subject(&out, receiver_title(mail->message, arena));
    put_date(&out, mail->now_ms);
    weir_buf_printf(&out,
                    "Message-ID: <%s@%s>\r\n"
                    "Auto-Submitted: auto-generated\r\n"
                    "MIME-Version: 1.0\r\n"
                    "Content-Type: text/plain; charset=utf-8\r\n"
                    "Content-Transfer-Encoding: base64\r\n\r\n",
                    mail->delivery, strchr(mail->from, '@') + 1);
    put_body(&out, tell(mail->message, arena));
    char *copy = weir_arena_strdup(arena, out.data);
    weir_buf_fini(&out);
    return copy;
}
