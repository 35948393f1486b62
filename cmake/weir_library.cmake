# What `make check` builds, without the programs: all tests of domains (address sanitizer), those with threads of ours
# (thread sanitizer), and those of domains that compute with floating point or vectors, where optimisation could change
# a result (as they are shipped).
add_custom_target(unit-tests)
add_custom_target(thread-tests)
add_custom_target(numeric-tests)
set(weir_numeric_domains tensor onnx stats nn comm data vision sched train serve batch predict)

# weir_test_programs(NAME TESTS FUZZ SOURCES INCLUDE LIBS TEST_LIBS): a program for each of the files TESTS and FUZZ, with
# this include folder and these libraries, registered with ctest as NAME/FILE. Tests have SOURCES and TEST_LIBS too.
function(weir_test_programs name tests fuzzers sources include libs test_libs)
  if(TARGET weir_dep_check AND NOT WEIR_FUZZ)
    set(shared "")
    if(tests AND sources)
      # Compiled once, not once for each program.
      add_library(${name}_test_sources OBJECT ${sources})
      target_include_directories(${name}_test_sources PRIVATE ${include})
      target_link_libraries(${name}_test_sources PRIVATE ${libs} ${test_libs} weir_dep_check)
      set(shared $<TARGET_OBJECTS:${name}_test_sources>)
    endif()
    foreach(source IN LISTS tests)
      get_filename_component(test ${source} NAME_WE)
      add_executable(${name}_${test} ${source} ${shared})
      target_include_directories(${name}_${test} PRIVATE ${include})
      target_link_libraries(${name}_${test} PRIVATE ${libs} ${test_libs} weir_dep_check)
      add_dependencies(unit-tests ${name}_${test})
      add_test(NAME ${name}/${test} COMMAND ${name}_${test})
      set(labels unit ${name})
      if(name IN_LIST weir_numeric_domains)
        list(APPEND labels numeric)
        add_dependencies(numeric-tests ${name}_${test})
      endif()
      set_tests_properties(${name}/${test} PROPERTIES
        SKIP_RETURN_CODE 77 TIMEOUT 600 LABELS "${labels}"
        # Check gives a case 4 s; a busy machine needs more, and a hang is found as surely. OpenMP's threads that wait
        # do not spin, as in weir-worker: neighbours need the CPUs.
        ENVIRONMENT "WEIR_SHARED_DATA=${WEIR_SHARED_DATA};WEIR_TEST_CACHE=${CMAKE_BINARY_DIR}/test-cache;CK_DEFAULT_TIMEOUT=60;OMP_WAIT_POLICY=passive;GOMP_SPINCOUNT=1000;${WEIR_SANITIZER_ENVIRONMENT}")
    endforeach()
  endif()
  foreach(source IN LISTS fuzzers)
    get_filename_component(fuzz ${source} NAME_WE)
    if(WEIR_FUZZ)
      add_executable(${name}_${fuzz} ${source})
      target_link_options(${name}_${fuzz} PRIVATE -fsanitize=fuzzer)
    else()
      # Without libFuzzer the same target replays its corpus as an ordinary test.
      add_executable(${name}_${fuzz} ${source} ${CMAKE_SOURCE_DIR}/tests/fuzz_replay.c)
      add_test(NAME ${name}/${fuzz} COMMAND ${name}_${fuzz} ${CMAKE_SOURCE_DIR}/tests/corpus/${fuzz})
      set_tests_properties(${name}/${fuzz} PROPERTIES TIMEOUT 300 LABELS "unit;${name}")
    endif()
    target_include_directories(${name}_${fuzz} PRIVATE ${include})
    target_link_libraries(${name}_${fuzz} PRIVATE ${libs})
    add_dependencies(unit-tests ${name}_${fuzz})
  endforeach()
endfunction()

# weir_library(NAME SOURCES … [PRIVATE_FOLDERS] [DEPENDS domain …] [LIBS dep …] [TESTS x_test.c …] [FUZZ x_fuzz.c …])
#
# A domain is the static library weir_NAME over src/NAME. Its headers are reached as
# "NAME/header.h", and only by targets that name it in DEPENDS: each domain exports one include
# folder that holds nothing but a link to itself, so a forbidden #include does not compile.
# PRIVATE_FOLDERS: other domains see the headers of src/NAME itself, and none of its sub-folders.
# TESTS: each file is one Check program, registered with ctest under its own name.
function(weir_library name)
  cmake_parse_arguments(arg "PRIVATE_FOLDERS" "" "SOURCES;DEPENDS;LIBS;TESTS;FUZZ;TEST_DEPENDS;TEST_SOURCES" ${ARGN})
  set(own ${CMAKE_BINARY_DIR}/include/${name})
  set(dir ${own})
  file(MAKE_DIRECTORY ${own})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${name} ${own}/${name} SYMBOLIC)

  add_library(weir_${name} STATIC ${arg_SOURCES})
  if(arg_PRIVATE_FOLDERS)
    target_include_directories(weir_${name} PRIVATE ${own})
    set(dir ${own}.public)
    file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.h ${CMAKE_SOURCE_DIR}/src/${name}/*.def)
    file(MAKE_DIRECTORY ${dir}/${name})
    foreach(header IN LISTS headers)
      get_filename_component(file ${header} NAME)
      file(CREATE_LINK ${header} ${dir}/${name}/${file} SYMBOLIC)
    endforeach()
  endif()
  target_include_directories(weir_${name} PUBLIC ${dir})
  list(TRANSFORM arg_DEPENDS PREPEND weir_ OUTPUT_VARIABLE depends)
  list(TRANSFORM arg_LIBS PREPEND weir_dep_ OUTPUT_VARIABLE libs)
  target_link_libraries(weir_${name} PRIVATE ${depends} ${libs} Threads::Threads m)
  if(name STREQUAL base)
    target_link_libraries(weir_base PUBLIC weir_dep_jansson)
  endif()

  list(TRANSFORM arg_TEST_DEPENDS PREPEND weir_ OUTPUT_VARIABLE test_depends)
  weir_test_programs(${name} "${arg_TESTS}" "${arg_FUZZ}" "${arg_TEST_SOURCES}" ${own}
    "weir_${name};${depends};${libs}" "${test_depends}")
endfunction()

# weir_kinds(OUT FILE PATTERN [ABSENT FILE]): the source files of the kinds that FILE lists, a line WEIR_KIND(name) each
# (base/kind.h). PATTERN is the path of a kind's file with @ in place of its name. A line WEIR_KIND_WITH(library, name)
# stands for the same where the optional library is there (cmake/deps.cmake), and OUT_LIBS has it then, for LIBS;
# elsewhere ABSENT is taken in its place, a template that says @kind@ for the name and @noun@ for the folder. Without
# ABSENT the files need no library.
function(weir_kinds out file pattern)
  cmake_parse_arguments(arg "" "ABSENT" "" ${ARGN})
  set(sources "")
  set(libs "")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${file})
  file(STRINGS ${CMAKE_SOURCE_DIR}/src/${file} lines REGEX "^WEIR_KIND(_WITH)?\\([a-z0-9_, ]+\\)$")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^[A-Z_]+" "" words ${line})
    string(REGEX MATCHALL "[a-z0-9_]+" words ${words})
    list(POP_BACK words kind)
    string(REPLACE "@" ${kind} source ${pattern})
    if(arg_ABSENT AND words AND TARGET weir_dep_${words})
      list(APPEND libs ${words})
    elseif(arg_ABSENT AND words)
      get_filename_component(noun ${source} DIRECTORY)
      configure_file(${arg_ABSENT} ${CMAKE_CURRENT_BINARY_DIR}/${source} @ONLY)
      set(source ${CMAKE_CURRENT_BINARY_DIR}/${source})
    endif()
    list(APPEND sources ${source})
  endforeach()
  set(${out} ${sources} PARENT_SCOPE)
  set(${out}_LIBS ${libs} PARENT_SCOPE)
endfunction()

# The thread sanitizer lets each process sleep for a second before it ends, in case a race shows up yet:
# tests of many processes did little else.
set(WEIR_SANITIZER_ENVIRONMENT "")
if(WEIR_SANITIZE MATCHES thread)
  set(WEIR_SANITIZER_ENVIRONMENT "TSAN_OPTIONS=atexit_sleep_ms=50")
endif()

# weir_threads(NAME test …): these tests start threads of ours. `make check` runs them once more under
# the thread sanitizer, and always alone: they have deadlines, and neighbours would share the CPUs.
function(weir_threads name)
  foreach(test IN LISTS ARGN)
    if(TEST ${name}/${test})
      set_property(TEST ${name}/${test} APPEND PROPERTY LABELS threads)
      set_tests_properties(${name}/${test} PROPERTIES RUN_SERIAL ON)
      add_dependencies(thread-tests ${name}_${test})
    endif()
  endforeach()
endfunction()

# weir_waits(NAME test …): of these threads most wait for time or for other processes: neighbours do no
# harm, and the CPUs are not idle meanwhile. They are begun first.
function(weir_waits name)
  foreach(test IN LISTS ARGN)
    if(TEST ${name}/${test})
      set_tests_properties(${name}/${test} PROPERTIES RUN_SERIAL OFF COST 50)
    endif()
  endforeach()
endfunction()

# weir_slow(NAME test …): too slow for `make check`; `make check-long` runs them.
function(weir_slow name)
  foreach(test IN LISTS ARGN)
    if(TEST ${name}/${test})
      set_property(TEST ${name}/${test} APPEND PROPERTY LABELS slow)
    endif()
  endforeach()
endfunction()

# weir_alloc_sweep(NAME test [WHOLE_PROCESS]): this test makes allocations fail (base/test_alloc.h):
# those of our own code, or all of the process.
function(weir_alloc_sweep name test)
  if(NOT TARGET ${name}_${test})
    return()
  endif()
  set(base ${CMAKE_SOURCE_DIR}/src/base)
  if("${ARGN}" STREQUAL WHOLE_PROCESS)
    target_sources(${name}_${test} PRIVATE ${base}/test_alloc.c ${base}/test_alloc_process.c)
    # Or the compiler makes our calloc of its own malloc and memset, and calls itself.
    target_compile_options(${name}_${test} PRIVATE -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-strdup)
  else()
    target_sources(${name}_${test} PRIVATE ${base}/test_alloc.c ${base}/test_alloc_own.c)
    target_link_options(${name}_${test} PRIVATE
      -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=strdup,--wrap=mmap)
  endif()
endfunction()

# Where tests and benchmarks find real data; a test without it exits with 77 (skipped).
set(WEIR_SHARED_DATA ${CMAKE_SOURCE_DIR}/../shared/data CACHE PATH "Real data for tests")

# weir_embed(target file symbol): the bytes of `file` as `symbol` and `symbol_end` in target.
function(weir_embed target file symbol)
  set(asm ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.S)
  file(WRITE ${asm}
    "    .section .rodata\n    .global ${symbol}\n    .hidden ${symbol}\n    .global ${symbol}_end\n"
    "    .hidden ${symbol}_end\n    .balign 16\n${symbol}:\n    .incbin \"${file}\"\n${symbol}_end:\n"
    "    .byte 0\n    .section .note.GNU-stack,\"\",@progbits\n")
  set_source_files_properties(${asm} PROPERTIES OBJECT_DEPENDS ${file})
  target_sources(${target} PRIVATE ${asm})
endfunction()
