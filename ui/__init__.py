"""What pages share and only Streamlit can do: language, address, scenario panel, key figures."""
