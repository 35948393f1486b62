# One standard, one set of warnings, one set of hardening flags; presets choose optimisation and
# sanitizers. Never -Ofast or -ffinite-math-only: detecting NaN is part of the product.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # GNU C: cleanup attribute, statement attributes
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(WEIR_WERROR "Warnings are errors" ON)
set(WEIR_SANITIZE "" CACHE STRING "Sanitizers: address,undefined or thread")
option(WEIR_FUZZ "Build libFuzzer programs (clang)" OFF)

add_compile_definitions(_GNU_SOURCE WEIR_VERSION="${PROJECT_VERSION}")
add_compile_options(
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Wundef
  -fvisibility=hidden -fno-common -fstack-protector-strong -fstack-clash-protection
  "$<$<COMPILE_LANGUAGE:C>:SHELL:-include ${CMAKE_SOURCE_DIR}/src/base/banned.h>")
# Where ccache is installed, what was compiled before is not compiled again, in whatever folder the
# checkout lies: objects name files as seen from the build folder. What a file includes the compiler itself says
# (CCACHE_DEPEND): else each is read twice.
find_program(WEIR_CCACHE ccache)
if(WEIR_CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_DEPEND=1 CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=time_macros,locale ${WEIR_CCACHE})
  add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/src=../../src -ffile-prefix-map=${CMAKE_BINARY_DIR}/include=include)
endif()

# Some six hundred programs are linked for the tests: gold takes a third of the time. Not for releases,
# whose link-time optimisation is the other linker's.
include(CheckLinkerFlag)
check_linker_flag(C -fuse-ld=gold WEIR_HAS_GOLD)
if(WEIR_HAS_GOLD)
  add_link_options($<$<AND:$<NOT:$<CONFIG:Release>>,$<C_COMPILER_ID:GNU>>:-fuse-ld=gold>)
endif()
# What loops that are written for vectors are compiled at. A sanitizer looks at what they do, not at how fast: at -O3 it
# compiles them three times as long.
set(WEIR_VECTOR_LEVEL -O3)
if(WEIR_SANITIZE)
  set(WEIR_VECTOR_LEVEL -O1)
endif()
add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--as-needed)
if(WEIR_WERROR)
  add_compile_options(-Werror)
endif()
if(WEIR_SANITIZE)
  add_compile_options(-fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # What optimisation tells matters without sanitizers only: at their -Og gcc guesses about formats, and
  # clang does not vectorise loops that are watched.
  add_compile_options($<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>
                      $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed>)
  add_link_options(-fsanitize=${WEIR_SANITIZE})
else()
  add_compile_definitions($<$<NOT:$<CONFIG:Debug>>:_FORTIFY_SOURCE=2>)
  # At -O3 gcc forgets that a value is written whenever the status is WEIR_OK, and guesses about
  # formats; the dev build's word counts.
  add_compile_options($<$<AND:$<CONFIG:Release>,$<C_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized>
                      $<$<AND:$<CONFIG:Release>,$<C_COMPILER_ID:GNU>>:-Wno-format-truncation>)
  # Link-time optimisation compiles once more; vectors are passed within a file only.
  add_link_options($<$<C_COMPILER_ID:GNU>:-Wno-psabi>)
endif()
