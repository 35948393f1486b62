/* What every reading of files of views begins with; base/view.h. It has no guard. */
#include "base/view_end.h"

#define ALWAYS(kind, m, doc)   MEMBER(ALWAYS, kind, m, #m, doc)
#define OR_NULL(kind, m, doc)  MEMBER(OR_NULL, kind, m, #m, doc)
#define MAY_MISS(kind, m, doc) MEMBER(MAY_MISS, kind, m, #m, doc)
