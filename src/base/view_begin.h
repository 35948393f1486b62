/* What every reading of a file of views begins with: the words of the one before are gone; base/view.h. It has no
 * guard. */
#undef VIEW
#undef ANSWER
#undef PART
#undef RECORD
#undef RECORD_ANSWER
#undef OVER
#undef FIELD
#undef END_OVER
#undef PLAIN
#undef SAME
#undef MEMBER
#undef HOLDS
#undef ALWAYS
#undef OR_NULL
#undef MAY_MISS
#undef END
#undef SHAPE
#undef BODY
#undef SAYS
#undef END_SHAPE
#define ALWAYS(kind, m, doc)   MEMBER(ALWAYS, kind, m, #m, doc)
#define OR_NULL(kind, m, doc)  MEMBER(OR_NULL, kind, m, #m, doc)
#define MAY_MISS(kind, m, doc) MEMBER(MAY_MISS, kind, m, #m, doc)
