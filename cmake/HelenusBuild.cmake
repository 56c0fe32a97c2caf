# How every Helenus target is compiled, and the six kinds of target there are.
#
#   helenus_library(NAME base SOURCES ... DEPENDS fmt::fmt [APART ...])  one static library a folder
#   helenus_test(NAME base_test SOURCES ... DEPENDS base [LABELS memory threads])
#   helenus_test_support(NAME runtime_contract SOURCES ... DEPENDS runtime)    shared by tests
#   helenus_benchmark(NAME await SOURCES ... DEPENDS runtime)      the program bench-await
#   helenus_program(NAME helenus-sim SOURCES ... DEPENDS sim)
#   helenus_fuzzer(NAME codec SOURCES ... COVERS base/codec.cc DEPENDS base)   fuzz-codec, in asan
#
# A test labelled `memory` also runs under the asan preset, one labelled `threads` under tsan; the
# targets tests-memory and tests-threads build just those. The target tests builds all test programs
# and all programs for users, but no benchmark; tests-plain leaves out the tests labelled `memory`.
# The target headers_check compiles every header that no source file of its folder includes first on
# its own.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

set(HELENUS_SANITIZE "" CACHE STRING "Value of -fsanitize=, empty for none")
set(HELENUS_MARCH "x86-64-v3" CACHE STRING "Value of -march=, empty for the compiler's default")
# Tests are compiled with little or no optimisation: optimising (and instrumenting) what the test
# libraries inline takes half of their compile time and finds nothing. So are the mains of programs
# under a sanitizer; those that users run are not.
set(HELENUS_TEST_FLAGS "" CACHE STRING "Further compiler flags for tests")
separate_arguments(HELENUS_TEST_FLAGS UNIX_COMMAND "${HELENUS_TEST_FLAGS}")
option(HELENUS_SLOW_ASSERTS "Keep ASSERT_SLOW in the build" OFF)

# dev precompiles no headers of libraries, so that a source which forgets an include does not compile
# there.
set(HELENUS_PRECOMPILE "" CACHE STRING "Whose headers are precompiled: tests, libraries, both")

# Several sources of a target at a time, as one: what they include is read and what they inline is
# compiled once, which more than halves the work. Names of unnamed namespaces are then those of all
# of them; a source whose names another of its target has, too, is compiled APART. Not for dev,
# where a change should rebuild little and a source must stand alone.
option(HELENUS_UNITY "Compile several sources of a target as one" OFF)
set(HELENUS_UNITY_SOURCES 16)

# Compiles the sources of a target together, but for those whose file names are in the list.
function(helenus_unity target)
  if(NOT HELENUS_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${HELENUS_UNITY_SOURCES})
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source FILENAME file)
    if(file IN_LIST ARGN)
      set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

# Sloppiness: a precompiled header has no times in it, and tools/precompile writes the checksum that
# stands for it.
find_program(HELENUS_CCACHE ccache)
if(HELENUS_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      CCACHE_PCH_EXTSUM=1 CCACHE_SLOPPINESS=pch_defines,time_macros
      "${HELENUS_CCACHE}")
endif()

add_library(helenus_flags INTERFACE)
target_include_directories(helenus_flags INTERFACE "${CMAKE_SOURCE_DIR}/src")
target_compile_options(helenus_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wnon-virtual-dtor
  -Woverloaded-virtual -Wnull-dereference -Wimplicit-fallthrough -Wthread-safety -Werror
  -fno-omit-frame-pointer "-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=")
# -rdynamic: the backtrace of an assertion names functions.
target_link_options(helenus_flags INTERFACE -fuse-ld=lld -rdynamic)
if(HELENUS_MARCH AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(helenus_flags INTERFACE "-march=${HELENUS_MARCH}")
endif()
if(HELENUS_SLOW_ASSERTS)
  target_compile_definitions(helenus_flags INTERFACE HELENUS_SLOW_ASSERTS=1)
endif()
if(HELENUS_SANITIZE)
  target_compile_options(helenus_flags INTERFACE
    "-fsanitize=${HELENUS_SANITIZE}" -fno-sanitize-recover=all)
  target_link_options(helenus_flags INTERFACE "-fsanitize=${HELENUS_SANITIZE}")
endif()

# One precompiled header for the tests and one for the libraries: all targets of a kind have the
# same flags, but for definitions that none of these headers reads.
function(helenus_precompiled_headers kind)
  cmake_parse_arguments(ARG "" "" "HEADERS;OPTIONS;DEPENDS" ${ARGN})
  set(owner precompiled_${kind})
  set(source "${CMAKE_BINARY_DIR}/precompiled/${kind}.cc")
  file(CONFIGURE OUTPUT "${source}" CONTENT "")
  add_library(${owner} OBJECT EXCLUDE_FROM_ALL "${source}")
  # What these libraries define is defined wherever base is linked.
  target_link_libraries(${owner} PRIVATE helenus_flags fmt::fmt spdlog::spdlog ${ARG_DEPENDS})
  target_compile_options(${owner} PRIVATE ${ARG_OPTIONS} "SHELL:-Xclang -fno-pch-timestamp")
  target_precompile_headers(${owner} PRIVATE ${ARG_HEADERS})
  set_target_properties(${owner} PROPERTIES
    CXX_COMPILER_LAUNCHER "${CMAKE_SOURCE_DIR}/tools/precompile")
endfunction()

function(helenus_use_precompiled_headers target kind)
  if(TARGET precompiled_${kind})
    target_precompile_headers(${target} REUSE_FROM precompiled_${kind})
  endif()
endfunction()

set(library_headers
  <algorithm> <array> <bit> <chrono> <compare> <concepts> <coroutine> <cstdint> <cstring> <expected>
  <functional> <map> <memory> <optional> <span> <string> <string_view> <tuple> <utility> <variant>
  <vector> <fmt/format.h>)
set(test_headers ${library_headers}
  <fstream> <set> <gmock/gmock.h> <gtest/gtest.h> <rapidcheck/gtest.h>)
foreach(header IN ITEMS base/assert.h base/bytes.h base/codec.h base/result.h runtime/file_system.h
                        runtime/runtime.h runtime/sleep.h runtime/task_group.h runtime/transport.h)
  list(APPEND library_headers "<${header}>")
  list(APPEND test_headers "<${header}>")
endforeach()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # CMake's own value passes full paths behind -Xclang. ccache takes those as they are, and another
  # clone would get nothing from the cache.
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include-pch <PCH_FILE>)
  if("libraries" IN_LIST HELENUS_PRECOMPILE)
    helenus_precompiled_headers(libraries HEADERS ${library_headers})
    helenus_precompiled_headers(fuzzers HEADERS ${library_headers}
                                OPTIONS -fsanitize=fuzzer-no-link)
  endif()
  if("tests" IN_LIST HELENUS_PRECOMPILE)
    helenus_precompiled_headers(tests HEADERS ${test_headers} OPTIONS ${HELENUS_TEST_FLAGS}
                                DEPENDS GTest::gmock)
  endif()
endif()

add_custom_target(headers_check)
add_custom_target(tests)
add_custom_target(tests-plain)
add_custom_target(tests-memory)
add_custom_target(tests-threads)

# foo.cc includes foo.h first (tools/tidy.py sees to it), so building foo.cc proves that foo.h
# stands alone. The headers without such a source get a generated one, built only by headers_check.
function(helenus_check_headers library)
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" *.h)
  set(probes "")
  foreach(header IN LISTS headers)
    string(REGEX REPLACE "\\.h$" ".cc" source "${header}")
    if(NOT source IN_LIST ARGN)
      cmake_path(ABSOLUTE_PATH header OUTPUT_VARIABLE path)
      set(probe "${CMAKE_CURRENT_BINARY_DIR}/headers_check/${source}")
      file(CONFIGURE OUTPUT "${probe}" CONTENT "#include \"${path}\"\n#include \"${path}\"\n")
      list(APPEND probes "${probe}")
    endif()
  endforeach()
  if(probes)
    add_library(${library}_headers OBJECT EXCLUDE_FROM_ALL ${probes})
    target_link_libraries(${library}_headers PRIVATE ${library})
    add_dependencies(headers_check ${library}_headers)
  endif()
endfunction()

function(helenus_library)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPENDS;APART" ${ARGN})
  add_library(${ARG_NAME} STATIC ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PUBLIC helenus_flags ${ARG_DEPENDS})
  helenus_use_precompiled_headers(${ARG_NAME} libraries)
  helenus_unity(${ARG_NAME} ${ARG_APART})
  helenus_check_headers(${ARG_NAME} ${ARG_SOURCES})
endfunction()

function(helenus_executable)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE helenus_flags ${ARG_DEPENDS})
endfunction()

function(helenus_program)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPENDS" ${ARGN})
  helenus_executable(${ARGN})
  if(HELENUS_SANITIZE)
    target_compile_options(${ARG_NAME} PRIVATE ${HELENUS_TEST_FLAGS})
  endif()
  add_dependencies(tests ${ARG_NAME})
  add_dependencies(tests-plain ${ARG_NAME})
endfunction()

function(helenus_benchmark)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPENDS" ${ARGN})
  helenus_executable(NAME bench-${ARG_NAME} SOURCES ${ARG_SOURCES}
                     DEPENDS ${ARG_DEPENDS} bench_support)
endfunction()

# One gtest program a module; every case in it is a ctest test of its own.
function(helenus_test)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPENDS;LABELS;APART" ${ARGN})
  helenus_executable(NAME ${ARG_NAME} SOURCES ${ARG_SOURCES}
                     DEPENDS ${ARG_DEPENDS} GTest::gmock_main)
  target_compile_options(${ARG_NAME} PRIVATE ${HELENUS_TEST_FLAGS})
  helenus_unity(${ARG_NAME} ${ARG_APART})
  helenus_use_precompiled_headers(${ARG_NAME} tests)
  add_dependencies(tests ${ARG_NAME})
  if(NOT "memory" IN_LIST ARG_LABELS)
    add_dependencies(tests-plain ${ARG_NAME})
  endif()
  # gtest_discover_tests keeps only the first of a list of labels, so they become one word; the
  # presets' filters are regular expressions and find each label within it.
  list(JOIN ARG_LABELS "-" labels)
  # A parameter's name comes from its INSTANTIATE_TEST_SUITE_P: as a value it may print as bytes.
  gtest_discover_tests(${ARG_NAME} DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES
                       PROPERTIES TIMEOUT 300 LABELS "${labels}")
  foreach(label IN LISTS ARG_LABELS)
    if(TARGET tests-${label})
      add_dependencies(tests-${label} ${ARG_NAME})
    endif()
  endforeach()
endfunction()

# Objects, not an archive: from one the linker would drop every TEST_P that nothing refers to.
function(helenus_test_support)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPENDS;APART" ${ARGN})
  add_library(${ARG_NAME} OBJECT ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PUBLIC helenus_flags ${ARG_DEPENDS} GTest::gmock)
  target_compile_options(${ARG_NAME} PRIVATE ${HELENUS_TEST_FLAGS})
  helenus_use_precompiled_headers(${ARG_NAME} tests)
  helenus_unity(${ARG_NAME} ${ARG_APART})
endfunction()

# A libFuzzer program, where there is a sanitizer to tell it of faults. COVERS names the sources
# under test, relative to src: they are compiled, once for all fuzzers, with the coverage that
# guides the search and linked into the program, and so stand in for the same members of the
# library. As a test it is short and always draws the same inputs; see fuzz/README.md for longer
# searches.
function(helenus_fuzzer)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;COVERS;DEPENDS" ${ARGN})
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang" OR NOT HELENUS_SANITIZE MATCHES "address")
    return()
  endif()
  set(program fuzz-${ARG_NAME})
  add_executable(${program} ${ARG_SOURCES})
  set(guided ${program})
  foreach(source IN LISTS ARG_COVERS)
    string(MAKE_C_IDENTIFIER "covered_${source}" covered)
    if(NOT TARGET ${covered})
      add_library(${covered} OBJECT EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/src/${source}")
      list(APPEND guided ${covered})
    endif()
    target_sources(${program} PRIVATE $<TARGET_OBJECTS:${covered}>)
  endforeach()
  foreach(target IN LISTS guided)
    target_link_libraries(${target} PRIVATE helenus_flags ${ARG_DEPENDS})
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    helenus_use_precompiled_headers(${target} fuzzers)
  endforeach()
  target_link_options(${program} PRIVATE -fsanitize=fuzzer)

  file(GLOB seeds CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/corpus/${ARG_NAME}/*")
  list(JOIN seeds "," seeds)
  add_test(NAME fuzz.${ARG_NAME}
           COMMAND ${program} -seed=1 -runs=20000 -max_total_time=20 -max_len=4096 -timeout=10
                   "-artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/" "-seed_inputs=${seeds}")
  set_tests_properties(fuzz.${ARG_NAME} PROPERTIES TIMEOUT 120 LABELS memory)
  add_dependencies(tests-memory ${program})
endfunction()
