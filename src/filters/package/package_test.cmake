# Installs the package to a new folder, builds the example in another one with nothing but
# find_package, and runs it. BUILD, EXAMPLE, COMPILER and GENERATOR come from the test.
string(RANDOM LENGTH 12 suffix)
if(DEFINED ENV{TMPDIR})
  set(home "$ENV{TMPDIR}/helenus-filters-${suffix}")
else()
  set(home "/tmp/helenus-filters-${suffix}")
endif()

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    file(REMOVE_RECURSE "${home}")
    message(FATAL_ERROR "${what} failed:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run("building the library" "${CMAKE_COMMAND}" --build "${BUILD}" --target helenus_filters)
run("installing" "${CMAKE_COMMAND}" --install "${BUILD}" --component filters
    --prefix "${home}/prefix")
file(COPY "${EXAMPLE}/" DESTINATION "${home}/example")
run("configuring the example" "${CMAKE_COMMAND}" -S "${home}/example" -B "${home}/build"
    -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${home}/prefix")
run("building the example" "${CMAKE_COMMAND}" --build "${home}/build")
run("running the example" "${home}/build/filters_example" "${home}/seen.filter")
message("${output}")

# A header that included something outside the package would have been found in the tree.
file(GLOB_RECURSE headers "${home}/prefix/include/*.h")
foreach(header IN LISTS headers)
  file(STRINGS "${header}" stray REGEX "#include \"(base|filters)/|[^A-Z_](ASSERT|TRY)\\(")
  if(stray)
    message(FATAL_ERROR "${header} is not fit to be installed: ${stray}")
  endif()
endforeach()
file(REMOVE_RECURSE "${home}")
