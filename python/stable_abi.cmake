# The module by the stable ABI, gradus_python_abi3, which every Python from 3.12 on loads: made for wheels, where there is such
# a Python with its headers (tools/setup.sh python unpacks one). It stands beside the module for the Python of the build.
set(found)
if(Python_VERSION VERSION_GREATER_EQUAL 3.12)
  set(found ${Python_EXECUTABLE})
elseif(EXISTS ${PROJECT_SOURCE_DIR}/build/python-3.13/installed)
  set(found ${PROJECT_SOURCE_DIR}/build/python-3.13/venv/bin/python)
endif()
if(NOT EXISTS "${GRADUS_NEWER_PYTHON}")
  if(NOT found)
    return()
  endif()
  set(GRADUS_NEWER_PYTHON ${found} CACHE FILEPATH "A Python from 3.12 on, with headers, for the wheel by the stable ABI" FORCE)
endif()
execute_process(COMMAND ${GRADUS_NEWER_PYTHON} -c "import sys, sysconfig; print('%d.%d' % sys.version_info[:2], sysconfig.get_path('include'), sep=';')"
                OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE newer COMMAND_ERROR_IS_FATAL ANY)

# nanobind takes version and headers from the variables of FindPython, which looks for one Python alone.
function(gradus_native_of_stable_abi Python_VERSION headers)
  get_filename_component(above ${headers} DIRECTORY)  # Debian's pyconfig.h includes from there
  set(Python_INCLUDE_DIRS ${headers} ${above})
  if(NOT TARGET Python::SABIModule)
    add_library(Python::SABIModule INTERFACE IMPORTED)
  endif()
  gradus_native(gradus_python_abi3 STABLE_ABI)
  set_target_properties(gradus_python_abi3 PROPERTIES EXCLUDE_FROM_ALL ON)
endfunction()
gradus_native_of_stable_abi(${newer})
